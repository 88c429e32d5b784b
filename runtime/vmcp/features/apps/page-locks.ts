/**
 * Compares the HTML of pages with the digests in the backends' locks. A page is compared whenever a client reads it,
 * because a backend can change a page without changing its list.
 * Source: docs/guides/apps.md; docs/guides/tool-pinning.md.
 */
import { createHash } from 'node:crypto'
import { GatehouseError, type Pinning, type RuntimeToolLock } from '../../../../schemas/index.ts'
import { JsonObject, scanElements } from '../../../mcp/index.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { PinReason } from '../../model/catalog/pinning.ts'

/**
 * Checks the result of reading a page. `uri` is the address that the backend uses. Throws the error from `refuse` if the
 * lock does not allow the page.
 */
export type PageCheck = (entry: CatalogEntry, uri: string, result: Buffer) => void

/** A larger page counts as changed, because comparing it would delay other requests. */
const maxComparedBytes = 4 * 1024 * 1024

/** Returns the check for locks with pages. Returns undefined if no lock contains pages or pinning is off. */
export function makePageCheck(
  pinning: Pinning | undefined,
  toolLocks: readonly RuntimeToolLock[] | undefined,
  refuse: (entry: CatalogEntry, reason: PinReason) => GatehouseError,
): PageCheck | undefined {
  const locks = new Map(
    (pinning && toolLocks ? toolLocks : []).flatMap((lock) => (lock.pages ? [[lock.backend, lock]] : [])),
  )
  if (!pinning || locks.size === 0) return undefined
  return (entry, address, result) => {
    const lock = locks.get(entry.backend)
    if (!lock) return
    const { onChanged = pinning.onChanged, onNew = pinning.onNew, pages = [] } = lock
    const approved = pages.find(({ uri }) => uri === address)
    if (!approved) {
      if (onNew === 'block') throw refuse(entry, 'tool_new')
      return
    }
    const isEnforced = onChanged === 'block' || onChanged === 'freeze'
    if (!isEnforced) return
    if (result.length > maxComparedBytes || digestsOf(result).some((digest) => digest !== approved.digest))
      throw refuse(entry, 'tool_changed')
  }
}

/** Returns the digest of each content in a result. Throws BACKEND_PROTOCOL if a content has neither text nor blob. */
function digestsOf(result: Buffer): readonly string[] {
  const contents = new JsonObject(result).raw('contents')
  return (contents ? scanElements(contents) : []).map((json) => {
    const content = json[0] === 0x7b ? new JsonObject(json) : undefined
    const [text, blob] = [content?.text('text'), content?.text('blob')]
    // A client could render the member that was not compared.
    if ((text === undefined) === (blob === undefined)) throw new GatehouseError('BACKEND_PROTOCOL')
    const html = text ?? Buffer.from(blob ?? '', 'base64')
    return `sha256:${createHash('sha256').update(html).digest('hex')}`
  })
}
