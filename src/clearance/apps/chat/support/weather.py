"""Typical weather of some cities: rounded values of a usual January and July, kept in this file.

They are no measurements and no forecast, and every answer says so.
"""

from typing import Any

from clearance.apps.chat.support.errors import SupportError

BASIS = "typical values kept in this program, not a live reading"

# degrees Celsius: January low and high, July low and high
_TYPICAL = {
    "Bandung": (20, 28, 18, 28),
    "Beijing": (-8, 2, 23, 31),
    "Berlin": (-2, 3, 14, 25),
    "Denpasar": (24, 31, 23, 29),
    "Guangzhou": (11, 18, 26, 33),
    "Hong Kong": (15, 19, 27, 32),
    "Jakarta": (24, 30, 24, 32),
    "London": (3, 8, 14, 23),
    "Nairobi": (13, 26, 12, 23),
    "New York": (-2, 4, 21, 29),
    "Oslo": (-5, 0, 13, 23),
    "Paris": (3, 7, 16, 26),
    "San Francisco": (8, 14, 13, 20),
    "São Paulo": (19, 28, 12, 22),
    "Shanghai": (2, 8, 26, 32),
    "Singapore": (24, 30, 25, 31),
    "Surabaya": (24, 32, 22, 32),
    "Sydney": (20, 27, 9, 17),
    "Taipei": (14, 19, 27, 34),
    "Tokyo": (1, 10, 22, 30),
}
_OTHER_NAMES = {
    "万隆": "Bandung",
    "北京": "Beijing",
    "柏林": "Berlin",
    "登巴萨": "Denpasar",
    "广州": "Guangzhou",
    "香港": "Hong Kong",
    "hongkong": "Hong Kong",
    "雅加达": "Jakarta",
    "伦敦": "London",
    "内罗毕": "Nairobi",
    "纽约": "New York",
    "奥斯陆": "Oslo",
    "巴黎": "Paris",
    "旧金山": "San Francisco",
    "圣保罗": "São Paulo",
    "sao paulo": "São Paulo",
    "上海": "Shanghai",
    "新加坡": "Singapore",
    "singapura": "Singapore",
    "泗水": "Surabaya",
    "悉尼": "Sydney",
    "台北": "Taipei",
    "东京": "Tokyo",
}
_NAMES = {**{name.casefold(): name for name in _TYPICAL}, **_OTHER_NAMES}


def typical_weather(city: str) -> dict[str, Any]:
    """Return the usual January and July of a city, in degrees Celsius.

    Raises `SupportError` for a city that is not in the table, with those that are.
    """
    name = _NAMES.get(" ".join(city.split()).casefold())
    if name is None:
        raise SupportError(f"No typical values are kept for that city. Known: {', '.join(_TYPICAL)}.")
    january_low, january_high, july_low, july_high = _TYPICAL[name]
    return {
        "city": name,
        "asked": city,
        "basis": BASIS,
        "unit": "°C",
        "january_low": january_low,
        "january_high": january_high,
        "july_low": july_low,
        "july_high": july_high,
    }
