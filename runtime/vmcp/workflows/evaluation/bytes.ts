/** JSON text of an execution as bytes in shared memory: the server keeps it, and workers read it without a copy. */

export type SharedBytes = Uint8Array<SharedArrayBuffer>

export function shared(bytes: Uint8Array): SharedBytes {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}

export function textOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString()
}

/** The same memory as a Buffer. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
