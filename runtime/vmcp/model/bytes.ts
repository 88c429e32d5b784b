/** Returns a Buffer for bytes from another thread, where a Buffer arrives as a Uint8Array. Shares the memory. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
