"""The example rows that a new support database starts with: invented people and orders."""

# id, name, email, city
CUSTOMERS = (
    ("CU-1001", "Ana Kovač", "ana@example.org", "Zagreb"),
    ("CU-1002", "Budi Santoso", "budi@example.org", "Jakarta"),
    ("CU-1003", "陈静", "jing.chen@example.org", "Shanghai"),
    ("CU-1004", "Siti Rahmawati", "siti@example.com", "Bandung"),
    ("CU-1005", "Tom O'Brien", "tom@example.net", "Dublin"),
    ("CU-1006", "李伟", "wei.li@example.com", "Beijing"),
    ("CU-1007", "Maria Silva", "maria@example.net", "São Paulo"),
    ("CU-1008", "Jonas Weber", "jonas@example.org", "Berlin"),
)

# id, customer, item, status, ordered on, paid (euro cents)
ORDERS = (
    ("SO-1001", "CU-1001", "Desk lamp, brass", "delivered", "2025-09-02", 8990),
    ("SO-1002", "CU-1002", "Rain jacket, size M", "shipped", "2025-09-05", 12900),
    ("SO-1003", "CU-1003", "Tea set, porcelain, 6 cups", "delivered", "2025-09-07", 14950),
    ("SO-1004", "CU-1001", "Light bulb E27, pack of 4", "delivered", "2025-09-11", 1796),
    ("SO-1005", "CU-1004", "Batik scarf, indigo", "returned", "2025-09-14", 4500),
    ("SO-1006", "CU-1005", "Walking boots, size 44", "delivered", "2025-09-20", 16999),
    ("SO-1007", "CU-1006", "Mechanical keyboard, 87 keys", "shipped", "2025-09-23", 10900),
    ("SO-1008", "CU-1007", "Coffee grinder, hand", "paid", "2025-09-28", 6450),
    ("SO-1009", "CU-1008", "Bicycle bell", "delivered", "2025-10-01", 1250),
    ("SO-1010", "CU-1002", "Umbrella, black", "paid", "2025-10-03", 2995),
    ("SO-1011", "CU-1003", "Calligraphy brush set", "delivered", "2025-10-06", 3880),
    ("SO-1012", "CU-1008", "Standing desk, oak, 140 cm", "awaiting payment", "2025-10-09", 0),
)
