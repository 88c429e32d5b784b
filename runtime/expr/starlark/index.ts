/**
 * An interpreter of Starlark: a small language in the shape of Python that cannot loop without end, cannot recurse and
 * cannot reach anything that it was not given. Go dialect, without sets, `while`, recursion and `load`; floats and
 * nested functions are in. No I/O: what scripts may reach are built-in functions of the host.
 *
 * Source: Starlark specification (github.com/bazelbuild/starlark, spec.md) and its Go dialect.
 */
export { asText, isCallable, positional, unpack } from './arguments.ts'
export { compile, type Program } from './compiler.ts'
export { Dict } from './dict.ts'
export { LimitError, type Position, StarlarkError } from './errors.ts'
export { Builtin, type Call, type Effect, Func, type Named, type Settled, type Work } from './functions.ts'
export { elementsOf } from './iterate.ts'
export { JsonError, readJson, writeJson } from './json.ts'
export { type Limits, Meter } from './meter.ts'
export { repr } from './print.ts'
export { execute, type RunOptions } from './scheduler.ts'
export { decode, encode } from './text.ts'
export { KEYWORDS, RESERVED } from './tokens.ts'
export { UNIVERSE } from './universe.ts'
export { Bytes, Float, List, Range, Tuple, typeOf, type StarlarkValue } from './values.ts'
