import type { NativeCall, StarlarkValue } from '../values/values.ts'

/** A method of values of one type. */
export type Method<Receiver> = (receiver: Receiver, call: NativeCall) => StarlarkValue
export type Methods<Receiver> = Readonly<Record<string, Method<Receiver>>>
