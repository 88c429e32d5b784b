/**
 * Random bytes for ids, secrets and nonces. The bytes are generated in batches, because a system call costs ten times
 * as much as the rest of creating an id. Each byte is used once and then erased.
 */
import { randomBytes, randomFillSync } from 'node:crypto'

const batch = Buffer.allocUnsafeSlow(2048)
let used = batch.length

/** Like `randomBytes` from node:crypto. */
export function randomBuffer(bytes: number): Buffer {
  if (bytes > batch.length) return randomBytes(bytes)
  if (used + bytes > batch.length) {
    randomFillSync(batch)
    used = 0
  }
  const end = used + bytes
  const bytesOut = Buffer.from(batch.subarray(used, end))
  batch.fill(0, used, end)
  used = end
  return bytesOut
}
