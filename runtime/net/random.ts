/**
 * Random bytes for ids, secrets and nonces. The system is asked for many at a time, because asking it costs ten times what
 * the rest of an id does. Each byte is given out once and does not stay here.
 */
import { randomBytes, randomFillSync } from 'node:crypto'

const batch = Buffer.allocUnsafeSlow(2048)
let used = batch.length

/** As `randomBytes` of node:crypto. */
export function randomBuffer(bytes: number): Buffer {
  if (bytes > batch.length) return randomBytes(bytes)
  if (used + bytes > batch.length) {
    randomFillSync(batch)
    used = 0
  }
  const end = used + bytes
  const given = Buffer.from(batch.subarray(used, end))
  batch.fill(0, used, end)
  used = end
  return given
}
