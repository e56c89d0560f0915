"""Changing: what the buttons of a form do to it. Each works as a plain button that sends the form."""

from collections.abc import Callable

from clearance.errors import InvalidInputError
from clearance.form.field import Field, Kind, State


def add_item(form: Field, state: State, name: str) -> State:
    """Add an item to the list of that name."""
    found = _container(form, name, Kind.LIST)
    numbers = [int(each[1:]) for each in found.ids if each[:1] == "n" and each[1:].isdecimal()]
    return state.with_members(name, (*found.ids, f"n{max(numbers, default=-1) + 1}"))


def add_member(form: Field, state: State, name: str, *, member: str) -> State:
    """Add a member to the object of that name: a property, or an entry where it takes any."""
    found = _container(form, name, Kind.OBJECT)
    if member in found.ids:
        raise InvalidInputError(f"There is a {member} already.")
    if member not in found.missing and not found.open:
        raise InvalidInputError(f"This takes no {member}.")
    return state.with_members(name, (*found.ids, member))


def remove(form: Field, state: State, name: str) -> State:
    """Take a part away from the list or object that it belongs to."""
    for parent in form.every():
        for part, child in zip(parent.ids, parent.children, strict=True):
            if child.name == name:
                return state.with_members(parent.name, tuple(each for each in parent.ids if each != part))
    raise InvalidInputError("What is to be removed is not there any more.")


def choose(form: Field, state: State, name: str, *, at: int) -> State:
    """Choose another alternative of a union."""
    found = form.find(name)
    if found is None or not 0 <= at < len(found.forms):
        raise InvalidInputError("There is no such alternative here.")
    return state.with_form(name, at)


def change(form: Field, state: State, command: str, *, entry: Callable[[str], str]) -> State:
    """Do what a button's value says: `add NAME`, `set MEMBER-POINTER`, `remove NAME`, `choose AT NAME`.

    `entry` gives what was typed as the name of a new entry of an object (`entry NAME`).
    """
    verb, _, name = command.partition(" ")
    match verb:
        case "add":
            return add_item(form, state, name)
        case "set":
            parent, _, last = name.rpartition("/")
            return add_member(form, state, parent, member=last.replace("~1", "/").replace("~0", "~"))
        case "entry":
            return add_member(form, state, name, member=entry(name))
        case "remove":
            return remove(form, state, name)
        case "choose":
            at, _, name = name.partition(" ")
            return choose(form, state, name, at=int(at) if at.isdecimal() else -1)
        case _:
            raise InvalidInputError("That button is not known here.")


def _container(form: Field, name: str, kind: Kind) -> Field:
    found = form.find(name)
    if found is None or found.kind is not kind:
        raise InvalidInputError("What is to be added to is not there any more.")
    return found
