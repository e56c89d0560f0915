"""Everything that the offline model says, in English, Indonesian and Chinese.

Each sentence is a `string.Template`; all languages have the same sentences with the same places.
"""

from collections.abc import Mapping
from enum import StrEnum
from string import Template
from typing import Final

from clearance.apps.chat.offline.language import Language


class Say(StrEnum):
    """The sentences, by what they are for."""

    LABEL = "label"
    HELP = "help"
    HELP_EXAMPLES = "help_examples"
    HELP_SLASH = "help_slash"
    HELP_NO_TOOLS = "help_no_tools"
    NOTHING_PROPOSED = "nothing_proposed"
    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_ARGUMENT = "unknown_argument"
    NO_ARGUMENTS = "no_arguments"
    REPEATED_ARGUMENT = "repeated_argument"
    MISSING_ARGUMENT = "missing_argument"
    NAMELESS_WORD = "nameless_word"
    WRONG_VALUE = "wrong_value"
    NO_FIT = "no_fit"
    OPEN_QUOTE = "open_quote"
    TOO_LONG = "too_long"
    USAGE = "usage"
    ASK = "ask"
    CANCELLED = "cancelled"
    RESULT = "result"
    EDITED = "edited"
    RESPONDED = "responded"
    REJECTED = "rejected"
    REJECTED_SILENTLY = "rejected_silently"
    EXPIRED = "expired"
    BLOCKED = "blocked"
    NOT_RUN = "not_run"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    NEWS = "news"
    WHAT_NEXT = "what_next"
    SHORTENED = "shortened"
    TEXT = "string"
    WHOLE_NUMBER = "integer"
    NUMBER = "number"
    TRUE_OR_FALSE = "boolean"
    NULL = "null"
    LIST = "array"
    OBJECT = "object"
    ONE_OF = "one_of"
    SUCH_AS = "such_as"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    LONGEST = "longest"
    OR = "or"


_ENGLISH: Final[Mapping[Say, str]] = {
    Say.LABEL: "Offline model: fixed rules, no AI. It knows set phrases and slash commands only.",
    Say.HELP: "I am the offline model: fixed rules, no AI.",
    Say.HELP_EXAMPLES: "You can ask me, for example:",
    Say.HELP_SLASH: "Every tool can also be called exactly:",
    Say.HELP_NO_TOOLS: "I have no tools here.",
    Say.NOTHING_PROPOSED: "I proposed nothing, because:",
    Say.UNKNOWN_TOOL: "There is no tool $tool. The tools are: $known.",
    Say.UNKNOWN_ARGUMENT: "$tool has no argument $argument. It takes: $known.",
    Say.NO_ARGUMENTS: "$tool takes no arguments.",
    Say.REPEATED_ARGUMENT: "$tool: $argument is given twice. Give it once.",
    Say.MISSING_ARGUMENT: "$tool: $argument is missing. It must be $expected.",
    Say.NAMELESS_WORD: "$tool: word $position has no name. Write name=value, "
    "and put quotation marks round a value with spaces.",
    Say.WRONG_VALUE: "$tool: $argument must be $expected.",
    Say.NO_FIT: "$tool: these arguments do not go together.",
    Say.OPEN_QUOTE: "$tool: a quotation mark is not closed, or a backslash stands at the end. "
    "Put a value with an apostrophe in double quotation marks.",
    Say.TOO_LONG: "The commands are longer than the $limit bytes that a call may have.",
    Say.USAGE: "Write it like this: $usage",
    Say.ASK: "What should $argument be for $tool? It must be $expected.",
    Say.CANCELLED: "All right, I proposed nothing.",
    Say.RESULT: "Result of $tool:\n$text",
    Say.EDITED: "A person changed this call before it ran. What ran: $call",
    Say.RESPONDED: "$tool did not run; a person answered instead: $text",
    Say.REJECTED: "$tool was not carried out. The reason given: $text",
    Say.BLOCKED: "$tool was not carried out: the policy forbids it.",
    Say.FAILED: "$tool failed. It reported: $text",
    Say.UNCERTAIN: "It is unknown whether $tool took effect. It is not repeated by itself.",
    Say.REJECTED_SILENTLY: "$tool was not carried out: a reviewer rejected it and gave no reason.",
    Say.EXPIRED: "$tool was not carried out: nobody cleared it in time.",
    Say.NOT_RUN: "$tool was not carried out: $text",
    Say.NEWS: "News of an earlier call: $text",
    Say.WHAT_NEXT: "What would you like me to do now?",
    Say.SHORTENED: "… (shortened; the whole text has $length characters)",
    Say.TEXT: "a text",
    Say.WHOLE_NUMBER: "a whole number",
    Say.NUMBER: "a number",
    Say.TRUE_OR_FALSE: "true or false",
    Say.NULL: "null",
    Say.LIST: "a list in JSON, in single quotation marks",
    Say.OBJECT: "an object in JSON, in single quotation marks",
    Say.ONE_OF: "one of: $values",
    Say.SUCH_AS: "such as $values",
    Say.AT_LEAST: "at least $limit",
    Say.AT_MOST: "at most $limit",
    Say.LONGEST: "at most $limit characters",
    Say.OR: " or ",
}

_INDONESIAN: Final[Mapping[Say, str]] = {
    Say.LABEL: "Model luring: aturan tetap, bukan AI. Hanya mengenal frasa dan perintah tertentu.",
    Say.HELP: "Saya model luring: aturan tetap, bukan AI.",
    Say.HELP_EXAMPLES: "Contoh permintaan:",
    Say.HELP_SLASH: "Setiap tool juga dapat dipanggil secara persis:",
    Say.HELP_NO_TOOLS: "Saya tidak punya tool di sini.",
    Say.NOTHING_PROPOSED: "Saya tidak mengusulkan apa pun, karena:",
    Say.UNKNOWN_TOOL: "Tidak ada tool $tool. Tool yang ada: $known.",
    Say.UNKNOWN_ARGUMENT: "$tool tidak punya argumen $argument. Argumennya: $known.",
    Say.NO_ARGUMENTS: "$tool tidak menerima argumen.",
    Say.REPEATED_ARGUMENT: "$tool: $argument ditulis dua kali. Tulis sekali saja.",
    Say.MISSING_ARGUMENT: "$tool: $argument belum ada. Isinya harus $expected.",
    Say.NAMELESS_WORD: "$tool: kata ke-$position tidak bernama. Tulis nama=nilai, "
    "dan apit nilai yang berspasi dengan tanda kutip.",
    Say.WRONG_VALUE: "$tool: $argument harus $expected.",
    Say.NO_FIT: "$tool: argumen-argumen ini tidak cocok satu sama lain.",
    Say.OPEN_QUOTE: "$tool: ada tanda kutip yang tidak ditutup, atau garis miring terbalik di "
    "akhir. Apit nilai yang memuat apostrof dengan tanda kutip ganda.",
    Say.TOO_LONG: "Perintahnya lebih panjang dari $limit byte, batas untuk satu panggilan.",
    Say.USAGE: "Tulis seperti ini: $usage",
    Say.ASK: "Apa isi $argument untuk $tool? Isinya harus $expected.",
    Say.CANCELLED: "Baik, saya tidak mengusulkan apa pun.",
    Say.RESULT: "Hasil $tool:\n$text",
    Say.EDITED: "Seseorang mengubah panggilan ini sebelum dijalankan. Yang dijalankan: $call",
    Say.RESPONDED: "$tool tidak dijalankan; seseorang menjawab sebagai gantinya: $text",
    Say.REJECTED: "$tool tidak dijalankan. Alasannya: $text",
    Say.BLOCKED: "$tool tidak dijalankan: kebijakan melarangnya.",
    Say.FAILED: "$tool gagal. Laporannya: $text",
    Say.UNCERTAIN: "Tidak diketahui apakah $tool sudah berdampak. Panggilan itu tidak diulang sendiri.",
    Say.REJECTED_SILENTLY: "$tool tidak dijalankan: peninjau menolaknya tanpa memberi alasan.",
    Say.EXPIRED: "$tool tidak dijalankan: tidak ada yang menyetujuinya sebelum tenggat.",
    Say.NOT_RUN: "$tool tidak dijalankan: $text",
    Say.NEWS: "Kabar tentang panggilan sebelumnya: $text",
    Say.WHAT_NEXT: "Apa yang sebaiknya saya lakukan sekarang?",
    Say.SHORTENED: "… (dipersingkat; teks lengkapnya $length karakter)",
    Say.TEXT: "berupa teks",
    Say.WHOLE_NUMBER: "berupa bilangan bulat",
    Say.NUMBER: "berupa bilangan",
    Say.TRUE_OR_FALSE: "true atau false",
    Say.NULL: "null",
    Say.LIST: "berupa daftar JSON yang diapit tanda kutip tunggal",
    Say.OBJECT: "berupa objek JSON yang diapit tanda kutip tunggal",
    Say.ONE_OF: "salah satu dari: $values",
    Say.SUCH_AS: "misalnya $values",
    Say.AT_LEAST: "paling sedikit $limit",
    Say.AT_MOST: "paling banyak $limit",
    Say.LONGEST: "paling panjang $limit karakter",
    Say.OR: " atau ",
}

_CHINESE: Final[Mapping[Say, str]] = {
    Say.LABEL: "离线模型：固定规则，不是人工智能。只认识固定句式和斜杠命令。",
    Say.HELP: "我是离线模型：按固定规则工作，不是人工智能。",
    Say.HELP_EXAMPLES: "例如可以这样问我：",
    Say.HELP_SLASH: "每个工具也可以用斜杠命令精确调用：",
    Say.HELP_NO_TOOLS: "这里没有任何工具。",
    Say.NOTHING_PROPOSED: "我没有提出任何调用，原因是：",
    Say.UNKNOWN_TOOL: "没有名为 $tool 的工具。现有工具：$known。",
    Say.UNKNOWN_ARGUMENT: "$tool 没有参数 $argument。它的参数是：$known。",
    Say.NO_ARGUMENTS: "$tool 不接受参数。",
    Say.REPEATED_ARGUMENT: "$tool：$argument 写了两次，请只写一次。",
    Say.MISSING_ARGUMENT: "$tool：缺少 $argument。它应当是$expected。",
    Say.NAMELESS_WORD: "$tool：第 $position 个词没有名称。请写成 名称=值，值里有空格时加引号。",
    Say.WRONG_VALUE: "$tool：$argument 应当是$expected。",
    Say.NO_FIT: "$tool：这些参数不能一起使用。",
    Say.OPEN_QUOTE: "$tool：有一个引号没有闭合，或末尾有一个反斜杠。值里有撇号时请用双引号括起来。",
    Say.TOO_LONG: "命令超过了一次调用允许的 $limit 字节。",
    Say.USAGE: "请这样写：$usage",
    Say.ASK: "$tool 的 $argument 是什么？它应当是$expected。",
    Say.CANCELLED: "好的，我没有提出任何调用。",
    Say.RESULT: "$tool 的结果：\n$text",
    Say.EDITED: "有人在执行前修改了这次调用。实际执行的是：$call",
    Say.RESPONDED: "$tool 没有执行，由人代为回答：$text",
    Say.REJECTED: "$tool 没有执行。给出的理由：$text",
    Say.BLOCKED: "$tool 没有执行：策略禁止这次调用。",
    Say.FAILED: "$tool 执行失败，报告如下：$text",
    Say.UNCERTAIN: "无法确定 $tool 是否已经生效，也不会自动重试。",
    Say.REJECTED_SILENTLY: "$tool 没有执行：审核人拒绝了它，没有给出理由。",
    Say.EXPIRED: "$tool 没有执行：没有人在期限内批准。",
    Say.NOT_RUN: "$tool 没有执行：$text",
    Say.NEWS: "关于之前一次调用的消息：$text",
    Say.WHAT_NEXT: "接下来您希望我做什么？",
    Say.SHORTENED: "…（已缩短；全文共 $length 个字符）",
    Say.TEXT: "文本",
    Say.WHOLE_NUMBER: "整数",
    Say.NUMBER: "数字",
    Say.TRUE_OR_FALSE: " true 或 false",
    Say.NULL: " null",
    Say.LIST: "用单引号括起来的 JSON 列表",
    Say.OBJECT: "用单引号括起来的 JSON 对象",
    Say.ONE_OF: "以下之一：$values",
    Say.SUCH_AS: "例如 $values",
    Say.AT_LEAST: "不小于 $limit",
    Say.AT_MOST: "不大于 $limit",
    Say.LONGEST: "最多 $limit 个字符",
    Say.OR: "或",
}

SENTENCES: Final[Mapping[Language, Mapping[Say, str]]] = {
    Language.EN: _ENGLISH,
    Language.ID: _INDONESIAN,
    Language.ZH: _CHINESE,
}


def say(sentence: Say, language: Language, **places: object) -> str:
    """Return a sentence with its places filled."""
    return Template(SENTENCES[language][sentence]).substitute(places)


def label(language: Language = Language.EN) -> str:
    """Return the one sentence for banners and badges that says this model is no AI."""
    return say(Say.LABEL, language)
