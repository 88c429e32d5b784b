/**
 * Lists the directories of skills. For backends that do not list directories, the list is built from the skill's entry.
 * Source: MCP Skills, "Reading Directories".
 */
import { JsonError, JsonObject, readAhead, type TurnWork, visitElementsInTurns } from '../../../mcp/index.ts'
import { joinedItems } from '../../catalog/pages.ts'
import { isSafeUri, type Skill } from './entry.ts'

const maxChildren = 10_000
/** Children between two yields. */
const childrenPerTurn = 100
const directoryType = 'inode/directory'

/** Returns the result for a directory. Returns undefined if the skill does not have the directory. */
export function directoryIn(
  { files = new Map() }: Skill,
  directory: string,
  addressOf: (uri: string) => string | undefined,
): Buffer | undefined {
  const inside = `${directory}/`
  const children = new Map<string, Readonly<Record<string, unknown>>>()
  for (const [uri, { size }] of files) {
    if (!uri.startsWith(inside)) continue
    const [name = '', below] = uri.slice(inside.length).split('/', 2)
    const child = { uri: addressOf(inside + name), name: decodeURIComponent(name) }
    if (below !== undefined) children.set(name, { ...child, mimeType: directoryType })
    else children.set(name, { ...child, ...(name.endsWith('.md') && { mimeType: 'text/markdown' }), size })
  }
  if (children.size === 0) return undefined
  return Buffer.from(JSON.stringify({ resources: [...children.values()] }))
}

/** Returns the children of a directory as clients see them, without entries that are not direct children. */
export function* shownChildren(
  resources: Buffer,
  directory: string,
  addressOf: (uri: string) => string | undefined,
): TurnWork<readonly Buffer[]> {
  const inside = `${directory}/`
  const children: Buffer[] = []
  let count = 0
  function* show(json: Buffer): TurnWork<void> {
    if (++count > maxChildren) throw new JsonError('too many elements', 0)
    if (count % childrenPerTurn === 0) yield
    if (json[0] !== 0x7b) return
    yield* readAhead(json)
    const child = new JsonObject(json)
    const uri = child.text('uri') ?? ''
    const address = uri.startsWith(inside) && isSafeUri(uri) ? addressOf(uri) : undefined
    if (address === undefined || uri.slice(inside.length).includes('/')) return
    children.push(child.with({ uri: JSON.stringify(address) }))
  }
  yield* visitElementsInTurns(resources, (from, to) => show(resources.subarray(from, to)))
  return children
}

export function directoryResult(result: JsonObject, children: readonly Buffer[]): Buffer {
  return result.with({ resources: joinedItems(children, { before: '[', between: ',', after: ']' }) })
}
