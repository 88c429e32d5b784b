/** Compares the content of a skill file with the size and the digest in the skill's entry. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { JsonObject, readAhead, readMembers, visitElementsInTurns, workOn } from '../../../mcp/index.ts'
import type { SkillFile } from './entry.ts'

const sliceBytes = 1024 * 1024

/** Resolves to true if a result of `resources/read` contains exactly the file. Throws JsonError for invalid JSON. */
export async function containsFile(result: Buffer, file: SkillFile): Promise<boolean> {
  await workOn(result, readMembers(result))
  const raw = new JsonObject(result).raw('contents')
  if (raw?.[0] !== 0x5b) return false
  const contents: Buffer[] = []
  const add = (from: number, to: number): undefined => void contents.push(raw.subarray(from, to))
  await workOn(raw, visitElementsInTurns(raw, add))
  const [content, more] = contents
  if (content?.[0] !== 0x7b || more) return false
  await workOn(content, readAhead(content))
  const item = new JsonObject(content)
  const [text, blob] = [item.text('text'), item.text('blob')]
  // A client could use the member that was not compared.
  if ((text === undefined) === (blob === undefined)) return false
  const bytes = text === undefined ? Buffer.from(blob ?? '', 'base64') : Buffer.from(text)
  return bytes.length === file.size && (await digestOf(bytes)) === file.digest
}

async function digestOf(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256')
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (from > 0) await setImmediate()
    hash.update(bytes.subarray(from, from + sliceBytes))
  }
  return `sha256:${hash.digest('hex')}`
}
