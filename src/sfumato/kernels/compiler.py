"""The compiler of kernels: numba's own, without the steps that take time and that kernels do not need.

It changes neither what a kernel computes nor how other functions are compiled: it is a compiler class that the
decorator passes to numba for kernels only. If numba finds an error in its output, numba refuses to compile.

Numba generates code for any function and leaves it to LLVM to remove what is not needed: a stack slot for every
variable, a copy of the array descriptor at every use, reference counts. Generating and removing that code took half of
the time. See docs/decisions/kernels.md.
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

# Expressions that take values apart or put them together, and allocate nothing.
PARTS = ("getattr", "getitem", "static_getitem", "exhaust_iter", "build_tuple")


class KernelCompiler(compiler.Compiler):
    """Compile a kernel that Python calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _library(KernelLibrary, target), *rest)
        self.state.typingctx = _remembering(typing)
        self.state.targetctx = self.state.targetctx.subtarget(typing_context=self.state.typingctx)

    def define_pipelines(self) -> Any:
        [pipeline] = super().define_pipelines()
        left_out: set[Any] = {NopythonRewrites}  # fuses expressions on whole arrays; kernels write loops
        if not any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts):
            left_out.add(InlineClosureLikes)
        pipeline.passes = [
            (_Lowering if step is NativeLowering else step, description)
            for step, description in pipeline.passes
            if step not in left_out
        ]
        return [pipeline]

    def _compile_core(self) -> Any:
        # A compiler makes many small objects, and almost all of them live until it is done: collecting garbage took a
        # seventh of its time. Only one thread compiles at a time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()


class PartCompiler(KernelCompiler):
    """Compile a kernel that other kernels call."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _library(_PartLibrary, target), *rest)

    def define_pipelines(self) -> Any:
        # Not an option of the decorator: numba compiles its own functions again for each set of options.
        self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()


def _library(kind: type[KernelLibrary], target: Any) -> Any:
    library = kind(target.codegen(), "kernel")
    library.enable_object_caching()
    return library


class KernelLibrary(codegen.JITCodeLibrary):
    """Code that is simplified before it is linked and optimised as a whole afterwards."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager(opt=1)
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        self._drop_unused_arguments()
        super()._optimize_final_module()
        # Another kernel may have a function of the same name that takes other arguments: they must not be mixed up.
        self._set_linkage(Linkage.linkonce_odr, "internal")

    def _drop_unused_arguments(self) -> None:
        """Drop the arguments that no function uses: an array is a dozen arguments, and most functions use three.

        LLVM drops arguments only of internal functions. But it also inlines internal functions into their callers,
        which takes longer. So functions are internal during this pass only.
        """
        dropped = self._set_linkage(Linkage.linkonce_odr, "internal")
        passes = create_new_module_pass_manager()
        passes.add_dead_arg_elimination_pass()
        passes.run(self._final_module, self._codegen._pass_builder())
        self._set_linkage(Linkage.internal, "linkonce_odr", dropped)

    def _set_linkage(self, before: Any, after: str, names: Collection[str] | None = None) -> set[str]:
        """Change the linkage of functions, of those with the given names if there are any; return their names."""
        found = {
            function.name
            for function in self._final_module.functions
            if not function.is_declaration and function.linkage == before and (names is None or function.name in names)
        }
        for name in found:
            self._final_module.get_function(name).linkage = after
        return found


class _PartLibrary(KernelLibrary):
    """Code that is only linked into other code, and is optimised and becomes machine code there."""

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
    """The environment of code that is only linked: it has none."""

    def set_env(self, name: str, environment: Any) -> None:
        return


class _Function(types.Function):
    """A function that numba knows, such as an operator, which remembers its return type by argument types."""

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
    """Numba's typing context, which resolves an operator once for each set of types and not at every use.

    For ``a + b`` numba tries dozens of implementations one after another, most of them for arrays, strings and dates.
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
                pass  # numba tries other implementations, and explains the error
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
    """Numba's lowering of typed statements to LLVM instructions, with fewer instructions.

    - Arguments and parts of them live as long as the function runs: they need no reference counts.
    - A variable that is assigned once is a value and needs no stack slot.
    - An item of an array is loaded or stored without a copy of the array descriptor.
    """

    def __init__(self, context: Any, library: Any, fndesc: Any, func_ir: Any, metadata: Any = None) -> None:
        kinds, described = fndesc.typemap, context.data_model_manager
        assigned = [statement for block in func_ir.blocks.values() for statement in block.find_insts(ir.Assign)]
        counted = {name for name, kind in kinds.items() if described[kind].contains_nrt_meminfo()}
        # A generator outlives its caller.
        self._borrowed = set() if func_ir.is_generator else _borrowed(assigned, counted, kinds)
        self._counted = counted - self._borrowed
        for block in func_ir.blocks.values():
            block.body = [
                statement
                for statement in block.body
                if not isinstance(statement, ir.Del) or statement.value in self._counted
            ]
        counts = any(statement.target.name in self._counted for statement in assigned)
        context = context.subtarget(enable_nrt=counts)
        context.__dict__.pop("nrt", None)  # numba made it for the original of this copy
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
        """Return the address of an item. As everywhere in numba, a negative index counts from the end."""
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
    """Llvmlite's builder, which extracts nothing from a structure that was just inserted into it."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        path = [idx] if isinstance(idx, int) else list(idx)
        while path and isinstance(agg, InsertValue):
            put_in = list(agg.indices)
            if put_in == path[: len(put_in)]:
                agg, path = agg.value, path[len(put_in) :]
            elif path == put_in[: len(path)]:  # only a part of what is extracted was inserted here
                break
            else:
                agg = agg.aggregate
        return super().extract_value(agg, path, name) if path else agg


def _places(index: Any) -> tuple[Any, ...]:
    """Return the types of an index, one for each dimension."""
    return getattr(index, "types", (index,))


def _is_item(array: Any, index: Any) -> bool:
    """Whether an index selects a single item of an array of numbers."""
    places = _places(index)
    return (
        type(array) is types.Array
        and isinstance(array.dtype, types.Number | types.Boolean)
        and len(places) == array.ndim
        and all(isinstance(place, types.Integer) for place in places)
    )


def _borrowed(assigned: list[Any], counted: set[str], kinds: dict[str, Any]) -> set[str]:
    """Return the variables that always hold an argument of the function or a part of one."""
    times = Counter(statement.target.name for statement in assigned)
    candidates = [
        statement for statement in assigned if statement.target.name in counted and times[statement.target.name] == 1
    ]
    borrowed: set[str] = set()
    while found := {
        statement.target.name
        for statement in candidates
        if statement.target.name not in borrowed and _is_part(statement.value, counted - borrowed, kinds)
    }:
        borrowed |= found
    return borrowed


def _is_part(value: Any, owned: set[str], kinds: dict[str, Any]) -> bool:
    """Whether a value is an argument, or made of values that the function does not own."""
    if isinstance(value, ir.Arg):
        return True
    if isinstance(value, ir.Var):
        return value.name not in owned
    if not isinstance(value, ir.Expr) or value.op not in PARTS:
        return False
    if value.op == "getitem" and _has_array(kinds[value.index.name]):  # allocates a new array
        return False
    return all(variable.name not in owned for variable in value.list_vars())


def _has_array(index: Any) -> bool:
    return any(isinstance(place, types.Array) for place in _places(index))


def _values(blocks: Any) -> set[str]:
    """Return the variables that are assigned once, on every path to their uses."""
    assigned: dict[str, list[int]] = defaultdict(list)
    for offset, block in blocks.items():
        for statement in block.find_insts(ir.Assign):
            assigned[statement.target.name].append(offset)
    used: dict[str, list[int]] = defaultdict(list)
    for offset, names in analysis.compute_use_defs(blocks).usemap.items():
        for name in names:
            used[name].append(offset)
    before = analysis.compute_cfg_from_blocks(blocks).dominators()
    return {
        name
        for name, places in assigned.items()
        # Blocks are lowered in the order of their offsets.
        if len(places) == 1 and all(places[0] < use and places[0] in before[use] for use in used[name])
    }
