"""How people ask for the support desk's tools, and how results are told, in three languages.

This is what the offline model reads; the form is described in `clearance.apps.chat.offline.bound`.
"""

from typing import Any, Final

Declared = dict[str, Any]

_FIND = "(search|find|show|look up|list)"
_MAIL = "(send|write) [an ](email|e-mail|mail)"
_SUREL = "(kirim|kirimkan|tulis) (email|surel)"
_YOUJIAN = "给[ ]{to}[ ](发送|发|写)[一封](邮件|电子邮件)"
_KEMBALIKAN = "(kembalikan|kembalikan uang|refund)"
_TUIKUAN = "[给|为]订单[ ]{order_id}[ ](退款|退)"

WEATHER: Final[Declared] = {
    "phrases": {
        "en": [
            "[(what is|what's|how is|how's|show me|tell me) ][the ]weather[ like]"
            "[ today][ (in|for|at) {city}][ (today|now)]"
        ],
        "id": ["[(bagaimana|apa|seperti apa|cek) ]cuaca[nya][ hari ini][ (di|untuk) {city}][ hari ini]"],
        "zh": [
            "[查一下|查询|看看|告诉我][今天](天气|气温)[怎么样|如何]",
            "[查一下|查询|看看|告诉我][今天]{city}[今天][的](天气|气温)[怎么样|如何|是什么]",
        ],
    },
    "examples": {
        "en": "What is the weather in Jakarta?",
        "id": "Bagaimana cuaca di Jakarta?",
        "zh": "雅加达的天气怎么样？",
    },
    "ask": {"city": {"en": "For which city?", "id": "Untuk kota mana?", "zh": "哪个城市？"}},
    "answer": {
        "en": {
            "text": "Typical for $asked, not a live reading: "
            "January $january_low to $january_high $unit, July $july_low to $july_high $unit.",
        },
        "id": {
            "text": "Nilai khas untuk $asked, bukan pengukuran saat ini: "
            "Januari $january_low sampai $january_high $unit, "
            "Juli $july_low sampai $july_high $unit.",
        },
        "zh": {
            "text": "${asked}的典型数值（不是实时读数）：一月 $january_low 至 $january_high $unit，"
            "七月 $july_low 至 $july_high $unit。",
        },
    },
}

ORDERS: Final[Declared] = {
    "phrases": {
        "en": [
            f"{_FIND}[ me][ (the|all|my)] order[s][ (for|of|from|by) {{query}}]",
            f"{_FIND}[ for][ the] order[s] {{query}}",
            "(where is|what about|status of) order {query}",
        ],
        "id": [
            "(cari|carikan|lihat|tampilkan|cek)[ semua] pesanan[ (untuk|dari|milik) {query}]",
            "(cari|carikan|lihat|tampilkan|cek) pesanan {query}",
        ],
        "zh": [
            "(查询|查找|搜索|查一下|显示)[所有]订单",
            "(查询|查找|搜索|查一下|显示){query}的[所有]订单",
            "(查询|查找|搜索|查一下|显示)订单[ ][：]{query}",
        ],
    },
    "examples": {
        "en": "Search orders for Ana",
        "id": "Cari pesanan dari Budi",
        "zh": "查询陈静的订单",
    },
    "ask": {
        "query": {
            "en": "Which orders? Give an order id, a name, an address or an item.",
            "id": "Pesanan yang mana? Sebutkan nomor pesanan, nama, alamat, atau barangnya.",
            "zh": "查哪些订单？请给出订单号、姓名、邮箱或商品。",
        }
    },
    "answer": {
        "en": {
            "text": 'Orders found for "$query": $count.',
            "rows": "orders",
            "row": "- $order_id: $item, $status, ordered $ordered_on by $customer; "
            "paid $paid $currency, paid back $refunded $currency",
        },
        "id": {
            "text": 'Pesanan yang cocok dengan "$query": $count.',
            "rows": "orders",
            "row": "- $order_id: $item, status $status, dipesan $ordered_on oleh $customer; "
            "dibayar $paid $currency, dikembalikan $refunded $currency",
        },
        "zh": {
            "text": "与“$query”相符的订单：$count 个。",
            "rows": "orders",
            "row": "- $order_id：$item，状态 $status，$customer 于 $ordered_on 下单；"
            "已付 $paid $currency，已退 $refunded $currency",
        },
    },
}

EMAIL: Final[Declared] = {
    "phrases": {
        "en": [
            f"{_MAIL} to {{to}} (with the subject|with subject|about) {{subject}}"
            "[,] (saying|and say|with the text)[:] {body...}",
            f"{_MAIL} to {{to}}[,] (saying|and say|with the text)[:] {{body...}}",
            f"{_MAIL} to {{to}} (with the subject|with subject|about) {{subject}}",
            f"{_MAIL}[ to {{to}}]",
        ],
        "id": [
            f"{_SUREL} (ke|kepada) {{to}} (tentang|dengan subjek|perihal) {{subject}}"
            "[,] (isinya|dengan isi|yang berisi)[:] {body...}",
            f"{_SUREL} (ke|kepada) {{to}}[,] (isinya|dengan isi|yang berisi)[:] {{body...}}",
            f"{_SUREL} (ke|kepada) {{to}} (tentang|dengan subjek|perihal) {{subject}}",
            f"{_SUREL}[ (ke|kepada) {{to}}]",
        ],
        "zh": [
            f"{_YOUJIAN}[，]主题[是|为][：]{{subject}}[，|；]内容[是|为][：]{{body...}}",
            f"{_YOUJIAN}[，]内容[是|为][：]{{body...}}",
            f"{_YOUJIAN}[，]主题[是|为][：]{{subject}}",
            _YOUJIAN,
            "(发送|发|写)[一封](邮件|电子邮件)[给[ ]{to}]",
        ],
    },
    "examples": {
        "en": "Send an email to ana@example.org about your lamp saying It ships today.",
        "id": "Kirim email ke budi@example.org tentang pesanan dengan isi Pesanan Anda dikirim.",
        "zh": "给 jing.chen@example.org 发邮件，主题：茶具，内容：今天发货。",
    },
    "ask": {
        "to": {
            "en": "To whom? Give one address, such as ana@example.org.",
            "id": "Kepada siapa? Sebutkan satu alamat, misalnya ana@example.org.",
            "zh": "发给谁？请给出一个邮箱地址，例如 ana@example.org。",
        },
        "subject": {
            "en": "What is the subject?",
            "id": "Apa subjeknya?",
            "zh": "邮件主题是什么？",
        },
        "body": {
            "en": "What should the mail say?",
            "id": "Apa isi suratnya?",
            "zh": "邮件内容写什么？",
        },
    },
    "answer": {
        "en": {"text": 'The email to $to with the subject "$subject" was handed to $handed_to.'},
        "id": {"text": 'Email ke $to dengan subjek "$subject" sudah diserahkan ke $handed_to.'},
        "zh": {"text": "发给 $to、主题为“$subject”的邮件已交给 $handed_to。"},
    },
}

REFUND: Final[Declared] = {
    "phrases": {
        "en": [
            "refund {amount}[ (euro|euros|EUR)] (for|on|of)[ order] {order_id}[,] because {reason...}",
            "refund[ order] {order_id}[,] because {reason...}",
            "refund {amount}[ (euro|euros|EUR)] (for|on|of)[ order] {order_id}",
            "refund[ order] {order_id}",
            "(refund|(issue|give|make) a refund)[ (for|on)[ order] {order_id}]",
        ],
        "id": [
            f"{_KEMBALIKAN}[ sebesar] {{amount}}[ (euro|EUR)] untuk[ pesanan] {{order_id}}"
            "[,] karena {reason...}",
            f"{_KEMBALIKAN}[ sebesar] {{amount}}[ (euro|EUR)] untuk[ pesanan] {{order_id}}",
            f"{_KEMBALIKAN}[ untuk[ pesanan] {{order_id}}]",
        ],
        "zh": [
            f"{_TUIKUAN}[ ]{{amount}}[ ][欧元][，](因为|原因是|原因：){{reason...}}",
            f"{_TUIKUAN}[ ]{{amount}}[ ][欧元]",
            _TUIKUAN,
            "退款",
        ],
    },
    "examples": {
        "en": "Refund 20.00 for order SO-1003 because one cup was broken",
        "id": "Kembalikan 20.00 untuk pesanan SO-1002 karena jaketnya robek",
        "zh": "给订单 SO-1003 退款 20.00 欧元，因为有一个杯子碎了",
    },
    "ask": {
        "order_id": {
            "en": "For which order? Give its id, such as SO-1003.",
            "id": "Untuk pesanan mana? Sebutkan nomornya, misalnya SO-1003.",
            "zh": "哪个订单？请给出订单号，例如 SO-1003。",
        },
        "amount": {
            "en": "How much, in euros with two decimals, such as 49.90?",
            "id": "Berapa, dalam euro dengan dua desimal, misalnya 49.90?",
            "zh": "退多少欧元？请写两位小数，例如 49.90。",
        },
        "reason": {
            "en": "For what reason?",
            "id": "Apa alasannya?",
            "zh": "退款原因是什么？",
        },
    },
    "answer": {
        "en": {
            "text": "Refund $refund_id: $amount $currency was paid back for order $order_id; "
            "in all $refunded_in_all of $paid $currency.",
        },
        "id": {
            "text": "Pengembalian $refund_id: $amount $currency dikembalikan "
            "untuk pesanan $order_id; seluruhnya $refunded_in_all dari $paid $currency.",
        },
        "zh": {
            "text": "退款 $refund_id：订单 $order_id 已退 $amount $currency；"
            "累计已退 $refunded_in_all，共付 $paid $currency。",
        },
    },
}

DELETE: Final[Declared] = {
    "phrases": {
        "en": [
            {"say": "(delete|remove) [the ]customer[ {record_id}]", "with": {"table": "customers"}},
            {"say": "(delete|remove) [the ]order[ {record_id}]", "with": {"table": "orders"}},
        ],
        "id": [
            {"say": "hapus[kan] [data ]pelanggan[ {record_id}]", "with": {"table": "customers"}},
            {"say": "hapus[kan] [data ]pesanan[ {record_id}]", "with": {"table": "orders"}},
        ],
        "zh": [
            {"say": "(删除|移除)客户[[ ]{record_id}]", "with": {"table": "customers"}},
            {"say": "(删除|移除)订单[[ ]{record_id}]", "with": {"table": "orders"}},
        ],
    },
    "examples": {
        "en": "Delete customer CU-1005",
        "id": "Hapus pelanggan CU-1005",
        "zh": "删除客户 CU-1005",
    },
    "ask": {
        "record_id": {
            "en": "Which one? Give its id, such as CU-1005 or SO-1003.",
            "id": "Yang mana? Sebutkan nomornya, misalnya CU-1005 atau SO-1003.",
            "zh": "哪一个？请给出编号，例如 CU-1005 或 SO-1003。",
        },
    },
    "answer": {
        "en": {
            "text": "Deleted for good: $record_id from $table. "
            "Orders that stay without a customer: $orders_kept.",
        },
        "id": {
            "text": "Dihapus selamanya: $record_id dari $table. "
            "Pesanan yang tetap ada tanpa pelanggan: $orders_kept.",
        },
        "zh": {"text": "已永久删除：$table 中的 $record_id。保留但不再有客户的订单：$orders_kept 个。"},
    },
}
