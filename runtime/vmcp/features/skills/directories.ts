/**
 * Lists the directories of skills. For backends that do not list directories, the list is built from the skill's entry.
 * Source: MCP Skills, "Reading Directories".
 */
import { JsonObject } from '../../../mcp/index.ts'
import { joinedItems } from '../../catalog/pages.ts'
import { isSafeUri, type Skill } from './entry.ts'

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

/** Returns a child of a directory as clients see it. Returns undefined if the child is not inside the directory. */
export function shownChild(
  json: Buffer,
  directory: string,
  addressOf: (uri: string) => string | undefined,
): Buffer | undefined {
  const child = json[0] === 0x7b ? new JsonObject(json) : undefined
  const uri = child?.text('uri') ?? ''
  const inside = `${directory}/`
  if (!child || !uri.startsWith(inside) || !isSafeUri(uri) || uri.slice(inside.length).includes('/'))
    return undefined
  const address = addressOf(uri)
  return address === undefined ? undefined : child.with({ uri: JSON.stringify(address) })
}

export function directoryResult(result: JsonObject, children: readonly Buffer[]): Buffer {
  return result.with({ resources: joinedItems(children, { before: '[', between: ',', after: ']' }) })
}
