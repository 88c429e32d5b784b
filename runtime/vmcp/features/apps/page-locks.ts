/**
 * Compares the HTML of pages with the digests in the backends' locks. A page is compared whenever a client reads it,
 * because a backend can change a page without changing its list.
 * Source: docs/guides/apps.md; docs/guides/tool-pinning.md.
 */
import { createHash } from 'node:crypto'
import type { GatehouseError } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import { JsonObject, scanElements } from '../../../mcp/index.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { PinReason } from '../../model/catalog/pinning.ts'
import type { PageDrift } from './page-drift.ts'

/**
 * Checks the result of reading a page. `uri` is the address that the backend uses. Throws the error from `refuse` if the
 * lock does not allow the page.
 */
export type PageCheck = (entry: CatalogEntry, uri: string, result: Buffer) => void

/** A larger page counts as changed, because comparing it would delay other requests. */
export const maxPageBytes = 4 * 1024 * 1024

/**
 * Returns the check for locks with pages. Returns undefined if no lock contains pages or pinning is off. `drift` records
 * every comparison, whether or not the page is refused.
 */
export function makePageCheck(
  { pinning, toolLocks }: Pick<VmcpConfig, 'pinning' | 'toolLocks'>,
  drift: Pick<PageDrift, 'setLocks' | 'record'>,
  refuse: (entry: CatalogEntry, reason: PinReason) => GatehouseError,
): PageCheck | undefined {
  const locks = new Map(
    (pinning && toolLocks ? toolLocks : []).flatMap((lock) => (lock.pages ? [[lock.backend, lock]] : [])),
  )
  drift.setLocks(locks)
  if (!pinning || locks.size === 0) return undefined
  return (entry, address, result) => {
    const { backend } = entry
    const lock = locks.get(backend)
    if (!lock) return
    const { onChanged = pinning.onChanged, onNew = pinning.onNew, pages = [] } = lock
    const approved = pages.find(({ uri }) => uri === address)
    if (!approved) {
      drift.record(backend, address, 'new', { quiet: onNew === 'observe' })
      if (onNew === 'block') throw refuse(entry, 'tool_new')
      return
    }
    const isChanged =
      result.length > maxPageBytes ||
      htmlOf(result).some((html) => html === undefined || pageDigest(html) !== approved.digest)
    drift.record(backend, address, isChanged ? 'changed' : 'pinned', { quiet: onChanged === 'observe' })
    if (isChanged && (onChanged === 'block' || onChanged === 'freeze')) throw refuse(entry, 'tool_changed')
  }
}

/** Returns the HTML of each content in the result of a read. Undefined stands for a content without one text or blob. */
export function htmlOf(result: Buffer): readonly (Buffer | undefined)[] {
  const contents = new JsonObject(result).raw('contents')
  return (contents ? scanElements(contents) : []).map((json) => {
    const content = json[0] === 0x7b ? new JsonObject(json) : undefined
    const [text, blob] = [content?.text('text'), content?.text('blob')]
    // A client could render the member that was not compared.
    if ((text === undefined) === (blob === undefined)) return undefined
    return text === undefined ? Buffer.from(blob ?? '', 'base64') : Buffer.from(text)
  })
}

/** Returns the digest of a page as in locks. */
export function pageDigest(html: Buffer): string {
  return `sha256:${createHash('sha256').update(html).digest('hex')}`
}
