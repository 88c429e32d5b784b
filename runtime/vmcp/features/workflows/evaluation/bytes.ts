/** JSON text of an execution as bytes in shared memory: the server keeps it, and workers read it without a copy. */
import { bufferOf } from '../../../model/bytes.ts'

export type SharedBytes = Uint8Array<SharedArrayBuffer>

export function shared(bytes: Uint8Array): SharedBytes {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}

export function textOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString()
}
