/** Bytes that came from another thread, where a Buffer arrives as its plain form. The memory is the same. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
