"""The three languages of the offline model, and how it tells which one a text is written in."""

import re
from enum import StrEnum

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_]+")

# Small words that one of the two languages uses all the time and the other never does.
_INDONESIAN = (
    "ada adalah agar apa apakah atau bagaimana batal batalkan berapa bisa bolehkah buat cari cuaca "
    "dan dari dengan di hapus ini itu jangan kami karena ke kembalikan kepada kirim kirimkan kita "
    "lihat mohon pelanggan pesanan saya sebesar selamat siapa surel tampilkan terima tentang tidak "
    "tolong untuk yang"
)
_ENGLISH = (
    "a about an and are because can could customer delete do does find for from hello how i in is "
    "it me my of on order orders please refund search send show thank thanks that the to what "
    "where who why with you your"
)
_INDONESIAN_WORDS = frozenset(_INDONESIAN.split())
_ENGLISH_WORDS = frozenset(_ENGLISH.split())


class Language(StrEnum):
    """A language that the offline model reads and answers in."""

    EN = "en"
    ID = "id"
    ZH = "zh"


def guess(text: str) -> Language | None:
    """Return the language of a text, or None when it gives no sign of one of the three.

    Chinese when Han characters outnumber the words in letters, unless Japanese kana stand among
    them; otherwise the language with more of its small words.
    """
    words = [word.lower() for word in _WORD.findall(_HAN.sub(" ", text))]
    if _KANA.search(text):
        return None
    if len(_HAN.findall(text)) > len(words):
        return Language.ZH
    indonesian = sum(word in _INDONESIAN_WORDS for word in words)
    english = sum(word in _ENGLISH_WORDS for word in words)
    if indonesian == english:
        return None
    return Language.ID if indonesian > english else Language.EN
