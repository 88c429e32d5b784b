/**
 * An interpreter of Starlark, a small Python-like language. Scripts cannot loop forever, cannot recurse, and can only
 * access what the host provides. Implements the Go dialect with floats and nested functions, but without sets, `while`,
 * recursion and `load`. The interpreter has no I/O: scripts call built-in functions that the host provides.
 *
 * Source: Starlark specification (github.com/bazelbuild/starlark, spec.md) and its Go dialect.
 */
export { isCallable, positional } from './builtins/arguments.ts'
export { compile } from './compiler/compiler.ts'
export { Builtin, type NativeCall, Dict, List, type StarlarkValue, type ScriptWork } from './values/values.ts'
export { LimitError, StarlarkError } from './errors.ts'
export { elementsOf } from './values/iterate.ts'
export { JsonTextError, jsonString, readJson, writeJson } from './builtins/json.ts'
export { ScriptMeter } from './vm/meter.ts'
export { execute } from './vm/scheduler.ts'
export { decode, encode } from './values/text.ts'
export { keywordTable, reserved } from './syntax/tokens.ts'
export { universalNames } from './builtins/universe.ts'
