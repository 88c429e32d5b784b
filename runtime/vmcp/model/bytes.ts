/**
 * Returns a Buffer for bytes from another thread, which arrive as a Uint8Array. The Buffer shares the bytes' memory.
 */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
