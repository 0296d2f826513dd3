"""A taxonomy whose groups are made, renamed, moved and dissolved.

A group is on a level, which is above the levels of all that is in it. Where there is no room for a group between its
members and what they were in, a level is put in between. Levels without a group are taken out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sfumato.errors import UsageError
from sfumato.taxonomies.taxonomy import ROOT
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows


class TreeNode:
    """A value, which is on level 0, or a group with its members. The topmost group is ``*``."""

    __slots__ = ("level", "members", "name", "parent")

    def __init__(self, name: str, level: int, parent: TreeNode | None = None) -> None:
        self.name = name
        self.level = level
        self.parent = parent
        self.members: list[TreeNode] = []

    def __repr__(self) -> str:
        return f"<TreeNode: level {self.level}, {len(self.members)} members>"

    @property
    def is_group(self) -> bool:
        return self.level > 0

    def above(self) -> list[TreeNode]:
        """The groups that it is in, the nearest first."""
        found, node = [], self.parent
        while node is not None:
            found.append(node)
            node = node.parent
        return found

    def walk(self) -> Iterator[TreeNode]:
        """Yield it and all that is under it, each group before its members."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.members))


class GroupTree:
    """A tree that can be changed. Nodes are numbered in their order, ``*`` is 0; a change makes other numbers."""

    def __init__(self, rows: TaxonomyRows) -> None:
        top = len(rows.levels) + 1
        self.root = TreeNode(ROOT, top)
        self._numbers = list(range(top + 1))
        """What the number of each level was at first; -1 for a level that was put in."""
        groups: dict[tuple[int, str], TreeNode] = {}
        sizes = [Counter(level) for level in rows.levels]
        before: tuple[str, ...] | None = None
        node = self.root
        for leaf, *names in zip(rows.leaves, *rows.levels, strict=True):
            path = tuple(names)
            if path != before:  # values of one group mostly stand together
                before, node = path, self.root
                for level in range(top - 1, 0, -1):
                    name = path[level - 1]
                    if name == leaf and sizes[level - 1][name] == 1:
                        break  # the value itself stands there
                    if name == node.name and node is not self.root:
                        node.level = min(node.level, level)  # the group is on several levels: the lowest counts
                        continue
                    found = groups.get((level, name))
                    if found is None:
                        found = groups[level, name] = TreeNode(name, level, node)
                        node.members.append(found)
                    node = found
            node.members.append(TreeNode(leaf, 0, node))

    @property
    def nodes(self) -> list[TreeNode]:
        return list(self.root.walk())

    def node(self, number: int) -> TreeNode:
        """The node with this number."""
        nodes = self.nodes
        if not 0 <= number < len(nodes):
            raise UsageError("this group or value does not exist any more. Load the page again.")
        return nodes[number]

    def rows(self) -> TaxonomyRows:
        """The rows of the tree, in its order. Refuses a name that would stand for two sets of values."""
        self._check_names()
        leaves, levels = [], []
        top = self.root.level
        for leaf in self.root.walk():
            if leaf.is_group:
                continue
            chain = [leaf, *leaf.above()]
            names, position = [], 0
            for level in range(1, top):
                while chain[position + 1].level <= level:
                    position += 1
                names.append(chain[position].name)
            leaves.append(leaf.name)
            levels.append(names)
        return TaxonomyRows(tuple(leaves), tuple(zip(*levels, strict=True)) if levels else ())

    def level_now(self, number: int) -> int:
        """The number that a level has now; that of the next coarser one if it is gone."""
        return next(now for now, before in enumerate(self._numbers) if before >= number)

    def group(self, members: Sequence[TreeNode], name: str) -> TreeNode:
        """Put nodes into a new group, which stands where they stood."""
        name = _checked(name)
        members = self._topmost(members)
        place = self._nearest_common(members)
        level = 1 + max(node.level for node in members)
        if level >= place.level:
            level = place.level
            self._insert_level(level)
        made = TreeNode(name, level, place)
        place.members.insert(min(self._position(place, node) for node in members), made)
        self._put(members, made)
        self._tidy()
        return made

    def rename(self, node: TreeNode, name: str) -> None:
        """Give a group another name."""
        if not node.is_group or node is self.root:
            raise UsageError("only groups have names that can be changed. Choose a group.")
        node.name = _checked(name)

    def move(self, members: Sequence[TreeNode], target: TreeNode) -> None:
        """Put nodes into a group that exists."""
        members = [node for node in self._topmost(members) if node.parent is not target]
        if not target.is_group:
            raise UsageError("a value has no members. Choose a group.")
        if any(target is node or node in target.above() for node in members):
            raise UsageError("a group cannot be put into itself. Choose another group.")
        highest = max((node.level for node in members), default=0)
        if highest >= target.level:
            assert target.parent is not None  # nothing is as high as the root
            if highest + 1 >= target.parent.level:
                self._insert_level(target.parent.level)
            target.level = highest + 1
        self._put(members, target)
        self._tidy()

    def dissolve(self, node: TreeNode) -> None:
        """Take a group out; its members stand where it stood."""
        if not node.is_group or node.parent is None:
            raise UsageError("only groups can be dissolved. Choose a group.")
        parent = node.parent
        position = parent.members.index(node)
        parent.members[position : position + 1] = node.members
        for member in node.members:
            member.parent = parent
        self._tidy()

    def add(self, values: Iterable[str], target: TreeNode) -> None:
        """Put new values into a group."""
        if not target.is_group:
            raise UsageError("a value has no members. Choose a group.")
        target.members.extend(TreeNode(value, 0, target) for value in values)

    def _check_names(self) -> None:
        """Refuse two groups of one name, and a group with the name of a value that is not in it."""
        groups: dict[str, TreeNode] = {}
        for node in self.root.walk():
            if node.is_group and groups.setdefault(node.name, node) is not node:
                raise UsageError("another group has this name. Choose another name, or move the members there.")
        for node in self.root.walk():
            if not node.is_group and node.name in groups and groups[node.name] not in node.above():
                raise UsageError("a value outside the group has the name of the group. Choose another name.")

    def _put(self, members: Sequence[TreeNode], target: TreeNode) -> None:
        moved = set(map(id, members))
        for parent in {id(node.parent): node.parent for node in members}.values():
            assert parent is not None
            parent.members = [node for node in parent.members if id(node) not in moved]
        for node in members:
            node.parent = target
        target.members.extend(members)

    def _topmost(self, members: Sequence[TreeNode]) -> list[TreeNode]:
        """The nodes without those that are in others of them."""
        chosen = set(map(id, members))
        found = [node for node in members if not any(id(above) in chosen for above in node.above())]
        if not found or self.root in found:
            raise UsageError("nothing is chosen. Choose values or groups first.")
        return found

    def _nearest_common(self, members: Sequence[TreeNode]) -> TreeNode:
        common = members[0].above()
        for node in members[1:]:
            above = set(map(id, node.above()))
            common = [group for group in common if id(group) in above]
        return common[0]

    @staticmethod
    def _position(place: TreeNode, node: TreeNode) -> int:
        """The position, among the members of a group, of the one that a node is or is in."""
        chain = {id(node), *map(id, node.above())}
        return next(position for position, member in enumerate(place.members) if id(member) in chain)

    def _insert_level(self, at: int) -> None:
        """Make room below the groups of a level."""
        for node in self.root.walk():
            if node.level >= at:
                node.level += 1
        self._numbers.insert(at, -1)

    def _tidy(self) -> None:
        """Take out groups without members, and levels without groups."""
        for node in reversed(self.nodes):
            if node.is_group and not node.members and node.parent is not None:
                node.parent.members.remove(node)
        used = sorted({node.level for node in self.root.walk()} | {0})
        position = {level: number for number, level in enumerate(used)}
        for node in self.root.walk():
            node.level = position[node.level]
        self._numbers = [self._numbers[level] for level in used]


def _checked(name: str) -> str:
    name = name.strip()
    if not name or name == ROOT:
        raise UsageError("a group needs a name, which is not '*'. Write one.")
    return name
