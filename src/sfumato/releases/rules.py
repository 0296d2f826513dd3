"""Write a recoding as a file of rules and read it again: JSON that a person can read.

The rules are a tree. An inner node names the column that it splits and the last value of each part; a leaf is a region
and lists its released labels. The rules hold the bounds of regions, which are values of the table on which they were
learnt, and the names of all categories. So only the owner can read the file (0600) until the owner decides otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato._version import __version__
from sfumato.errors import InputError, PolicyError, UsageError
from sfumato.files.regular_file import read_file
from sfumato.policy import Policy
from sfumato.releases.certificate import shareable_policy
from sfumato.releases.recoding import Recoding
from sfumato.releases.regions import Regions, is_discrete, leaves_under
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.profile import ends_of, snap_of
from sfumato.tables.coding.scaled_integers import MOST_DIGITS
from sfumato.tables.targets.replacement import Signature, check_replaceable
from sfumato.tables.targets.staging import Stage, cannot_write, check_target, recover
from sfumato.tables.targets.target import refuse_input_as_output
from sfumato.taxonomies.ready import has_fixed_leaves
from sfumato.taxonomies.taxonomy import Taxonomy

FORMAT, FORMAT_OF_LEVELS = 1, 2
WHAT = "recoding rules of Sfumato"
RULES = Signature(re.compile(rb'\{\n  "what": "recoding rules of Sfumato",\n'))
QUERY = Signature(re.compile(rb"-- [\d,]+ regions over \d+ quasi-identifiers\. Nobody has audited"))
BATCH = 1 << 14  # regions whose labels are in memory as text at once


def rules_text(recoding: Recoding) -> str:
    """The rules as JSON, one node per line."""
    return "".join(rules_lines(recoding))


def check_rules_show_no_more(policy: Policy) -> None:
    """Refuse rules that would list the values below the finest level of a column.

    Rules hold every value that a taxonomy groups. Those of a prefix, or of ICD-10, come from the table.
    """
    for name in policy.quasi_identifiers:
        column = policy.columns[name]
        ready = column.ready_name
        from_table = not has_fixed_leaves(ready) if ready is not None else getattr(column.taxonomy, "prefix", None)
        if from_table and column.finest not in (None, 0):
            raise UsageError(
                f"rules would list the values of the column {name!r}, and its finest level hides them. Give the column "
                "a taxonomy file, remove finest, or release this table without rules."
            )


def rules_lines(recoding: Recoding) -> Iterator[str]:
    """The lines of the JSON, one by one: the text takes more memory than the rules themselves."""
    check_rules_show_no_more(recoding.policy)
    content: dict[str, Any] = {
        "what": WHAT,
        "format": FORMAT_OF_LEVELS if recoding.levels else FORMAT,
        "version": __version__,
        "method": recoding.method,
        "policy": shareable_policy(recoding.policy),
        "names": list(recoding.names),
        "columns": [_column_rules(domain, levels=bool(recoding.levels)) for domain in recoding.domains],
        "taxonomies": {name: _taxonomy_rules(tree) for name, tree in recoding.taxonomies.items()},
    }
    if recoding.levels:
        content["levels"] = dict(recoding.levels)
        yield json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        return
    head = json.dumps(content, indent=2, ensure_ascii=False)
    yield f'{head[:-2]},\n  "nodes": ['
    for index, node in enumerate(_nodes(recoding)):
        yield f"{',' if index else ''}\n    {json.dumps(node, ensure_ascii=False)}"
    yield "\n  ]\n}\n"


def write_rules(recoding: Recoding, path: Path, queries: Mapping[Path, str] | None = None) -> None:
    """Write the rules, and queries beside them, all or nothing, to files that only their owner can read."""
    with Stage() as stage:
        for target, lines in [
            (path, rules_lines(recoding)),
            *((file, [text]) for file, text in (queries or {}).items()),
        ]:
            try:
                with stage.path(target, private=True).open("w", encoding="utf-8") as file:
                    file.writelines(lines)
            except OSError as error:
                raise cannot_write(target, error) from None
        stage.publish()


def check_rules_target(
    table: object, path: Path, what: str = "rules", signature: Signature = RULES, *, force: bool
) -> None:
    """Refuse a target that cannot be written, or that exists and is something else, before the table is read."""
    check_target(path)
    refuse_input_as_output(table, path)
    check_replaceable(path, what, signature, force=force)


def load_rules(path: Path) -> Recoding:
    """Read a recoding from a file of rules."""
    recover(path)
    try:
        text = read_file(path).decode("utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"the rules {str(path)!r} cannot be read: {reason}. Check the path.") from None
    except UnicodeDecodeError:
        raise _not_rules(f"the file {str(path)!r}") from None
    return read_rules(text, f"the file {str(path)!r}", path.absolute().parent)


def read_rules(text: str, where: str = "the text", home: Path | None = None) -> Recoding:
    """Read a recoding from the text that ``rules_text`` wrote. ``where`` names its origin in error messages.

    ``home`` is the folder where the file lies, and may have the taxonomies of derived columns, of which rules have only
    the names.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _not_rules(where) from None
    try:
        if not isinstance(content, dict) or content.get("what") != WHAT:
            raise _not_rules(where)
        if _whole_number(content["format"]) not in (FORMAT, FORMAT_OF_LEVELS):
            raise InputError(
                f"the rules in {where} have format {content['format']}, but this version reads the formats {FORMAT} "
                f"and {FORMAT_OF_LEVELS}. Learn them again with sfumato fit."
            )
        recoding = _recoding(content, home)
        shown = [node["shows"] for node in content.get("nodes", ()) if "shows" in node]
        changed = not recoding.levels and shown != list(_in_node_order(recoding))
    except (ValueError, OverflowError, KeyError, TypeError, IndexError, PolicyError):
        raise InputError(
            f"the rules in {where} are damaged: they do not describe regions that tile a domain. Restore the file, or "
            "learn them again with sfumato fit."
        ) from None
    if changed:
        raise InputError(
            f"the rules in {where} were changed: the labels of a region do not match its bounds. Restore the file, or "
            "learn them again with sfumato fit."
        )
    return recoding


def _not_rules(where: str) -> InputError:
    return InputError(f"{where} holds no recoding rules. Make them with sfumato fit INPUT -o RULES.json.")


# ---- to JSON ----


def _column_rules(domain: Domain, *, levels: bool) -> dict[str, Any]:
    rules: dict[str, Any] = {"name": domain.name, "kind": domain.kind, "null": domain.has_null}
    if isinstance(domain, CategoricalDomain):
        return rules | {"taxonomy": _taxonomy_rules(domain.taxonomy, levels=levels)}
    assert isinstance(domain, NumericDomain)
    rules |= {"whole": domain.values.dtype.kind == "i"}
    if domain.bound_type is not None:
        rules |= {"scale": domain.scale, "type": _type_rules(domain.bound_type)}
    return rules | {"bounds": [json_value(domain, code) for code in range(len(domain.values))]}


def _type_rules(bound_type: pa.DataType) -> dict[str, Any]:
    if pa.types.is_timestamp(bound_type):
        return {"unit": bound_type.unit, "zone": bound_type.tz}
    return {"bits": bound_type.bit_width, "digits": bound_type.precision, "scale": bound_type.scale}


def _taxonomy_rules(taxonomy: Taxonomy, *, levels: bool = False) -> dict[str, Any]:
    """The tree as JSON; with ``levels``, also what each leaf is released as on every level."""
    fields = (taxonomy.labels, taxonomy.parent.tolist(), taxonomy.first.tolist(), taxonomy.last.tolist())
    rules = {"leaves": list(taxonomy.leaves), "nodes": [list(node) for node in zip(*fields, strict=True)]}
    if not taxonomy.finest and not levels:
        return rules
    labels_of_levels = [list(labels) for labels in taxonomy.level_labels]
    return rules | {
        "finest": taxonomy.finest,
        "members": dict(taxonomy.code_of_value),
        "levels": labels_of_levels,
    }


def json_value(domain: Domain, code: int) -> Any:
    """The value of a code in JSON: a number; a decimal, date or moment as text; a category; None for null."""
    if isinstance(domain, CategoricalDomain):
        return domain.taxonomy.leaves[code] if code < len(domain.taxonomy.leaves) else None
    assert isinstance(domain, NumericDomain)
    if code >= len(domain.values):
        return None
    if domain.kind == "numeric" and not domain.is_decimal:
        return domain.values[code].item()
    return domain.texts(domain.values[[code]])[0].as_py()


def _nodes(recoding: Recoding) -> Iterator[dict[str, Any]]:
    regions, labels = recoding.regions, _in_node_order(recoding)
    region = np.full(len(regions.attribute), -1, np.int64)
    region[regions.leaves] = np.arange(len(regions))
    for node, number in enumerate(region):
        if number >= 0:
            yield {"region": int(number), "shows": next(labels)}
            continue
        domain, parts = regions.domains[regions.attribute[node]], regions.children(node)
        ends = [json_value(domain, int(regions.high[part, regions.attribute[node]])) for part in parts]
        yield {"split": domain.name, "to": ends, "parts": list(parts)}


def _in_node_order(recoding: Recoding) -> Iterator[list[str | None]]:
    """The released labels of the regions, in the order of their nodes."""
    order = np.argsort(recoding.regions.leaves)
    for first in range(0, len(order), BATCH):
        yield from recoding.labels(order[first : first + BATCH])


# ---- from JSON ----


def _recoding(content: Mapping[str, Any], home: Path | None) -> Recoding:
    policy = Policy.from_dict(_object(content["policy"]), home, places=(Path.cwd(),))
    policy.check_complete()
    levels = {}
    if content["format"] == FORMAT_OF_LEVELS:
        levels = {name: _whole_number(level) for name, level in _object(content["levels"]).items()}
    domains = tuple(_domain(_object(rules), policy, levels.get(rules["name"])) for rules in _list(content["columns"]))
    if tuple(domain.name for domain in domains) != policy.quasi_identifiers:
        raise ValueError
    taxonomies = {name: _taxonomy(_object(rules)) for name, rules in _object(content["taxonomies"]).items()}
    names = tuple(map(_text, _list(content["names"])))
    if content["format"] == FORMAT_OF_LEVELS:
        for domain in domains:
            if levels[domain.name] not in (domain.finest, domain.top_level):
                raise ValueError
        return Recoding(Regions.whole(domains), policy, _text(content["method"]), taxonomies, names, levels)
    nodes = list(map(_object, _list(content["nodes"])))
    return Recoding(_regions(nodes, domains), policy, _text(content["method"]), taxonomies, names)


def _domain(rules: Mapping[str, Any], policy: Policy, level: int | None = None) -> Domain:
    """The domain of a column; on its level, if the rules name one below ``*``."""
    name, kind, null = _text(rules["name"]), rules["kind"], rules["null"] is True
    if "taxonomy" in rules:
        return CategoricalDomain(name, _taxonomy(_object(rules["taxonomy"])), null)
    # A column that held nothing but null has no values, and so no taxonomy.
    if kind not in ("numeric", "date", "moment") and (kind != "categorical" or rules["bounds"] != []):
        raise ValueError
    empty = np.empty(0, np.int64 if rules["whole"] is True else np.float64)
    scale, bound_type = 0, None
    if "type" in rules:
        scale, bound_type = rules["scale"], _bound_type(_object(rules["type"]), kind)
    if scale not in range(MOST_DIGITS + 1):
        raise ValueError
    snap = snap_of(name, policy.columns[name])
    ends = ends_of(name, policy.columns[name], rules["whole"] is True, scale)
    domain = NumericDomain(name, empty, null, kind, snap, scale, bound_type, *ends)
    finest = policy.columns[name].levels(name, domain.top_level)[0]
    if level is not None and not finest <= level <= domain.top_level:
        raise ValueError
    domain = replace(domain, finest=finest if level is None or level == domain.top_level else level)
    numbers = [_number_of(domain, value) for value in _list(rules["bounds"])]
    values = np.array(numbers, empty.dtype)
    if values.tolist() != numbers or not (np.diff(values) > 0).all() or not np.isfinite(values).all():
        raise ValueError
    return replace(domain, values=values)


def _bound_type(rules: Mapping[str, Any], kind: str) -> pa.DataType:
    if kind == "moment":
        return pa.timestamp(rules["unit"], rules["zone"])
    if rules["bits"] not in (32, 64, 128, 256):
        raise ValueError
    # The narrow decimals came with PyArrow 19.
    make = getattr(pa, f"decimal{rules['bits']}", pa.decimal128)
    return make(rules["digits"], rules["scale"])


def _number_of(domain: NumericDomain, value: Any) -> Any:
    """The number of a value from JSON, in the unit of the domain."""
    if domain.kind == "numeric" and not domain.is_decimal:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError
        return value
    number = domain.read(_text(value))
    if Fraction(number).denominator != 1:
        raise ValueError
    return int(number)


def _taxonomy(rules: Mapping[str, Any]) -> Taxonomy:
    leaves = tuple(map(_text, _list(rules["leaves"])))
    labels, *indices = zip(*map(_list, _list(rules["nodes"])), strict=True)
    parent, first, last = (np.array(list(map(_whole_number, column)), np.int32) for column in indices)
    taxonomy = Taxonomy(leaves=leaves, labels=tuple(map(_text, labels)), first=first, last=last, parent=parent)
    if not taxonomy.is_tree():
        raise ValueError
    if "finest" not in rules:
        return taxonomy
    members = {value: _whole_number(code) for value, code in _object(rules["members"]).items()}
    levels = tuple(tuple(map(_text, _list(labels))) for labels in _list(rules["levels"]))
    if set(members.values()) != set(range(len(leaves))) or any(len(labels) != len(leaves) for labels in levels):
        raise ValueError
    return replace(taxonomy, finest=_whole_number(rules["finest"]), members=members, level_labels=levels)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _regions(nodes: list[dict[str, Any]], domains: tuple[Domain, ...]) -> Regions:
    attribute_named = {domain.name: q for q, domain in enumerate(domains)}
    attribute, first_child = np.full((2, len(nodes)), -1, np.int64)
    low, high = np.zeros((2, len(nodes), len(domains)), np.uint32)
    high[0] = [domain.size - 1 for domain in domains]
    reached = 1
    for node, rules in enumerate(nodes):
        if "split" not in rules:
            continue
        q, parts = attribute_named[rules["split"]], rules["parts"]
        ends = [_code_of(domains[q], value) for value in rules["to"]]
        # Each node's children follow those of the nodes before it, so every node but the root has one parent.
        if parts != list(range(reached, reached + len(ends))) or len(parts) < 2:
            raise ValueError
        if ends[-1] != high[node, q] or ends != sorted(set(ends)) or ends[0] < low[node, q]:
            raise ValueError
        attribute[node], first_child[node], reached = q, reached, reached + len(parts)
        low[parts], high[parts] = low[node], high[node]
        high[parts, q] = ends
        low[parts[1:], q] = [_next_start(domains[q], end) for end in ends[:-1]]
    if reached != len(nodes):
        raise ValueError
    return Regions(domains, attribute, first_child, low, high, leaves_under(first_child))


def _next_start(domain: Domain, end: int) -> int:
    """The code at which a region begins if the region before it ends at ``end``."""
    last = domain.size - domain.has_null - 1
    shared = isinstance(domain, NumericDomain) and not is_discrete(domain) and domain.finest == 0 and end < last
    return end if shared else end + 1


def _code_of(domain: Domain, value: Any) -> int:
    """The code of a value from JSON."""
    if value is None:
        if not domain.has_null:
            raise ValueError
        return domain.size - 1
    if isinstance(domain, CategoricalDomain):
        return domain.taxonomy.leaves.index(value)
    assert isinstance(domain, NumericDomain)
    number = _number_of(domain, value)
    code = int(np.searchsorted(domain.values, number))
    if domain.values[code] != number:
        raise ValueError
    return code
