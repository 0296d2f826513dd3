"""How kernels are compiled: numba's own compiler, without what takes time and our kernels have no use for.

Nothing here changes what a kernel computes, and nothing how other functions are compiled: all of it is a compiler class
that the decorator names where it decorates. Where numba finds something wrong in it, it refuses to compile.

Numba makes code for any function at all, and leaves it to LLVM to find out that most of it is not needed: a place in
memory for every variable, a copy of all that describes an array wherever it is used, counts of who still uses it. Half
of the time went into making that and taking it away again. See docs/decisions/kernels.md.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import gc
import operator
from collections import Counter, defaultdict
from collections.abc import Collection
from functools import cache
from types import CodeType
from typing import Any

from llvmlite import ir as llvm
from llvmlite.binding import Linkage, create_new_module_pass_manager
from llvmlite.ir.instructions import InsertValue
from numba.core import analysis, cgutils, codegen, compiler, errors, ir, lowering, types
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import models
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import register_model
from numba.np import arrayobj

# Statements that give a part of a value, or put values together, and make nothing that has to be freed.
PARTS = ("getattr", "getitem", "static_getitem", "exhaust_iter", "build_tuple")


class KernelCompiler(compiler.Compiler):
    """Compile what Python calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _library(KernelLibrary, target), *rest)
        self.state.typingctx = _remembering(typing)
        self.state.targetctx = self.state.targetctx.subtarget(typing_context=self.state.typingctx)

    def define_pipelines(self) -> Any:
        [pipeline] = super().define_pipelines()
        left_out: set[Any] = {
            NopythonRewrites
        }  # it joins loops over whole arrays, and kernels write their loops themselves
        if not any(isinstance(one, CodeType) for one in self.state.func_id.code.co_consts):
            left_out.add(InlineClosureLikes)
        pipeline.passes = [
            (_Lowering if one is NativeLowering else one, said) for one, said in pipeline.passes if one not in left_out
        ]
        return [pipeline]

    def _compile_core(self) -> Any:
        # A compiler makes very many small objects, and almost all of them stay until it is done: looking through them
        # again and again for garbage took a seventh of its time. Only one thread compiles at a time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()


class PartCompiler(KernelCompiler):
    """Compile what other kernels call."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _library(_PartLibrary, target), *rest)

    def define_pipelines(self) -> Any:
        # Not an option of the decorator: numba keeps what it compiles of its own for each set of options.
        self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()


def _library(kind: type[KernelLibrary], target: Any) -> Any:
    library = kind(target.codegen(), "kernel")
    library.enable_object_caching()
    return library


class KernelLibrary(codegen.JITCodeLibrary):
    """Code that is made small before it is linked, and optimised as a whole after that."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager(opt=1)
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        self._drop_unused_arguments()
        super()._optimize_final_module()
        # Another kernel has a function of the same name that takes other arguments: none may be taken for the other.
        self._set_linkage(Linkage.linkonce_odr, "internal")

    def _drop_unused_arguments(self) -> None:
        """An array is a dozen arguments, and most functions use three of them.

        LLVM drops arguments of functions only that nothing outside can call, but then it also takes every function into
        the one that calls it, which takes longer. So they are not such functions again until that is done.
        """
        dropped = self._set_linkage(Linkage.linkonce_odr, "internal")
        passes = create_new_module_pass_manager()
        passes.add_dead_arg_elimination_pass()
        passes.run(self._final_module, self._codegen._pass_builder())
        self._set_linkage(Linkage.internal, "linkonce_odr", dropped)

    def _set_linkage(self, before: Any, after: str, names: Collection[str] | None = None) -> set[str]:
        """Change who can call functions, of those with the given names if there are any: their names."""
        found = {
            one.name
            for one in self._final_module.functions
            if not one.is_declaration and one.linkage == before and (names is None or one.name in names)
        }
        for name in found:
            self._final_module.get_function(name).linkage = after
        return found


class _PartLibrary(KernelLibrary):
    """Code that is only linked into other code: optimised and made into machine code there, and not here as well."""

    def _optimize_final_module(self) -> None:
        return

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment()


class _NoEnvironment:
    """Where a function of Python's is told its environment; what is only linked has none."""

    def set_env(self, name: str, environment: Any) -> None:
        return


class _Function(types.Function):
    """A function that numba knows, such as an operator, and what it was found to return for which types."""

    def __init__(self, templates: Any) -> None:
        super().__init__(templates)
        self._found: dict[tuple[Any, ...], Any] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        args = tuple(args)
        if kws or args not in self._found:
            found = super().get_call_type(context, args, kws)
            if kws:
                return found
            self._found[args] = found
        return self._found[args]


register_model(_Function)(models.OpaqueModel)


class _TypingContext:
    """Numba's own, but that it finds out once what an operator does with which types, and not wherever it is used.

    For ``a + b`` numba tries dozens of implementations, most of them for arrays, strings and dates, one after another.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._known: dict[Any, _Function] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_value_type(self, value: Any) -> Any:
        found = self._context.resolve_value_type(value)
        if type(found) is not types.Function:
            return found
        if found not in self._known:
            self._known[found] = _Function(found.templates)
        return self._known[found]

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        known = self.resolve_value_type(function) if function is operator.getitem else function
        if isinstance(known, _Function):
            try:
                return known.get_call_type(self._context, args, kws)
            except errors.TypingError:
                pass  # numba's own way has others to try, and says what is wrong
        return self._context.resolve_function_type(function, args, kws)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return self.resolve_value_type(operator.setitem).get_call_type(self._context, (target, index, value), {})


_remembering = cache(_TypingContext)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "sfumato_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower


class _Lower(lowering.Lower):
    """From statements and types to LLVM's instructions, as numba does it, but with fewer of them.

    - What a caller gave, and parts of it, stay as long as the function runs: nobody has to count who uses them.
    - A variable that is assigned once is a value, and needs no place in memory.
    - An item of an array is loaded or stored without a copy of all that describes the array.
    """

    def __init__(self, context: Any, library: Any, fndesc: Any, func_ir: Any, metadata: Any = None) -> None:
        kinds, described = fndesc.typemap, context.data_model_manager
        assigned = [one for block in func_ir.blocks.values() for one in block.find_insts(ir.Assign)]
        counted = {name for name, kind in kinds.items() if described[kind].contains_nrt_meminfo()}
        # A generator goes on when its caller is gone.
        self._borrowed = set() if func_ir.is_generator else _borrowed(assigned, counted, kinds)
        self._counted = counted - self._borrowed
        for block in func_ir.blocks.values():
            block.body = [one for one in block.body if not isinstance(one, ir.Del) or one.value in self._counted]
        counts = any(one.target.name in self._counted for one in assigned)
        context = context.subtarget(enable_nrt=counts)
        context.__dict__.pop("nrt", None)  # numba made it for the context that this is a copy of
        super().__init__(context, library, fndesc, func_ir, metadata)

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.builder = _Builder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if not self.func_ir.is_generator:
            self._singly_assigned_vars |= _values(self.blocks) - self._counted

    def lower_inst(self, inst: Any) -> Any:
        counts = self.context.enable_nrt
        if isinstance(inst, ir.Assign) and inst.target.name in self._borrowed:
            self.context.enable_nrt = False
        try:
            return super().lower_inst(inst)
        finally:
            self.context.enable_nrt = counts

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array, kind = self.typeof(value.name), signature.args[1]
        if not _is_item(array, kind):
            return super().lower_getitem(resty, expr, value, index, signature)
        item = arrayobj.load_item(self.context, self.builder, array, self._item(value, index, kind))
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        array, kind, given = self.typeof(target_var.name), signature.args[1], self.typeof(value_var.name)
        if not _is_item(array, kind) or not isinstance(given, types.Number | types.Boolean):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), given, signature.args[2])
        value = self.context.cast(self.builder, value, signature.args[2], array.dtype)
        return arrayobj.store_item(self.context, self.builder, array, value, self._item(target_var, index_var, kind))

    def _item(self, array: Any, index: Any, kind: Any) -> Any:
        """Where an item is. As everywhere in numba a negative index counts from the end."""
        context, builder, array_type = self.context, self.builder, self.typeof(array.name)
        model, held = context.data_model_manager[array_type], self.loadvar(array.name)
        shape = cgutils.unpack_tuple(builder, model.get(builder, held, "shape"), array_type.ndim)
        strides = cgutils.unpack_tuple(builder, model.get(builder, held, "strides"), array_type.ndim)
        place = context.cast(builder, self.loadvar(index.name), self.typeof(index.name), kind)
        places = cgutils.unpack_tuple(builder, place, len(kind)) if isinstance(kind, types.BaseTuple) else [place]
        fixed = [
            arrayobj.fix_integer_index(context, builder, one, place, size)
            for one, place, size in zip(_places(kind), places, shape, strict=True)
        ]
        data = model.get(builder, held, "data")
        return cgutils.get_item_pointer2(context, builder, data, shape, strides, array_type.layout, fixed)


class _Builder(llvm.IRBuilder):  # type: ignore[misc]
    """Llvmlite's own, but that it takes nothing out of a structure which was put in before: that is there as it is."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        path = [idx] if isinstance(idx, int) else list(idx)
        while path and isinstance(agg, InsertValue):
            put_in = list(agg.indices)
            if put_in == path[: len(put_in)]:
                agg, path = agg.value, path[len(put_in) :]
            elif path == put_in[: len(path)]:  # it is a part only of what is asked for
                break
            else:
                agg = agg.aggregate
        return super().extract_value(agg, path, name) if path else agg


def _places(index: Any) -> tuple[Any, ...]:
    """The types of an index, one for each dimension."""
    return getattr(index, "types", (index,))


def _is_item(array: Any, index: Any) -> bool:
    """Whether an index says one item of an array of numbers."""
    places = _places(index)
    return (
        type(array) is types.Array
        and isinstance(array.dtype, types.Number | types.Boolean)
        and len(places) == array.ndim
        and all(isinstance(place, types.Integer) for place in places)
    )


def _borrowed(assigned: list[Any], counted: set[str], kinds: dict[str, Any]) -> set[str]:
    """Variables that hold arrays and are always what the caller gave, or a part of that."""
    times = Counter(one.target.name for one in assigned)
    candidates = [one for one in assigned if one.target.name in counted and times[one.target.name] == 1]
    borrowed: set[str] = set()
    while found := {
        one.target.name
        for one in candidates
        if one.target.name not in borrowed and _is_part(one.value, counted - borrowed, kinds)
    }:
        borrowed |= found
    return borrowed


def _is_part(value: Any, owned: set[str], kinds: dict[str, Any]) -> bool:
    """Whether a value is given, or made of values that are not owned."""
    if isinstance(value, ir.Arg):
        return True
    if isinstance(value, ir.Var):
        return value.name not in owned
    if not isinstance(value, ir.Expr) or value.op not in PARTS:
        return False
    if value.op == "getitem" and _has_array(kinds[value.index.name]):  # that makes a new one
        return False
    return all(one.name not in owned for one in value.list_vars())


def _has_array(index: Any) -> bool:
    return any(isinstance(place, types.Array) for place in _places(index))


def _values(blocks: Any) -> set[str]:
    """Variables that are assigned once, on every way to where they are used."""
    assigned: dict[str, list[int]] = defaultdict(list)
    for offset, block in blocks.items():
        for one in block.find_insts(ir.Assign):
            assigned[one.target.name].append(offset)
    used: dict[str, list[int]] = defaultdict(list)
    for offset, names in analysis.compute_use_defs(blocks).usemap.items():
        for name in names:
            used[name].append(offset)
    before = analysis.compute_cfg_from_blocks(blocks).dominators()
    return {
        name
        for name, places in assigned.items()
        # A block is lowered after those that stand before it.
        if len(places) == 1 and all(places[0] < use and places[0] in before[use] for use in used[name])
    }
