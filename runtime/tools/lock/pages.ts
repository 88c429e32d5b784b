/**
 * Pages in locks. A lock contains the digest of each page. The HTML is stored in separate files next to the lock,
 * because it may be too large for an object in a cluster, and because reviewers can then read its changes in Git.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ToolLockSpec } from '../../../schemas/index.ts'
import { visibleText } from '../../observe/index.ts'
import { type PartDiff, pageDigest, type SurveyedPage, textDiff } from '../../vmcp/index.ts'
import { readFileOnDisk } from '../../toolkit/client-files/file.ts'
import type { Manifest } from '../../toolkit/manifests/read.ts'

type LockedPages = NonNullable<ToolLockSpec['pages']>

export interface PageDifference extends Pick<PartDiff, 'lines' | 'cut'> {
  readonly uri: string
  readonly state: 'changed' | 'new' | 'removed'
  /** Digest of the offered page. For a removed page, the digest of the approved page. */
  readonly digest: string
  /** True if the HTML of the approved page was not found, so there is no diff. */
  readonly isWithoutDiff: boolean
}

const maxSlug = 60
/** Long enough that a backend cannot find two addresses with the same file, one of which would hide the other. */
const fileHashLength = 32
const ownFile = /-[0-9a-f]{32}\.html$/

/** Returns the name of a page's file. The name does not depend on the HTML. */
function pageFile(uri: string): string {
  const slug = uri
    .replace(/^ui:\/\//, '')
    .replace(/[^A-Za-z0-9]+/g, '-')
    .slice(0, maxSlug)
  return `${slug}-${createHash('sha256').update(uri).digest('hex').slice(0, fileHashLength)}.html`
}

function folderOf(folder: string, backend: string): string {
  return join(folder, `${backend}.pages`)
}

/** Returns the folders that contain locks, in which the HTML of approved pages may be stored. */
export function lockFolders(manifests: readonly Manifest[]): readonly string[] {
  const files = manifests.flatMap(({ doc, file }) =>
    doc.kind === 'MCPToolLock' && file !== '-' ? [file] : [],
  )
  return [...new Set(files.map((file) => dirname(file)))]
}

/**
 * Returns the pages for a lock. A page that could not be read keeps its previous entry. Returns undefined if the backend
 * has no pages and the previous lock did not compare pages.
 */
export function lockedPages(
  pages: readonly SurveyedPage[],
  before: ToolLockSpec['pages'],
): LockedPages | undefined {
  const known = new Map(before?.map((page) => [page.uri, page]))
  const locked = pages.flatMap(({ uri, html, isListed }) => {
    if (html) return [{ uri, digest: pageDigest(html) }]
    return isListed ? (known.get(uri) ?? []) : []
  })
  return locked.length > 0 || before ? locked : undefined
}

/** Writes the HTML of a backend's pages, and deletes the files of pages that the backend no longer offers. */
export function writePages(folder: string, backend: string, pages: readonly SurveyedPage[]): void {
  const own = folderOf(folder, backend)
  const offered = pages.filter(({ html, isListed }) => html ?? isListed)
  if (offered.length > 0) mkdirSync(own, { recursive: true })
  for (const { uri, html } of offered) if (html) writeFileSync(join(own, pageFile(uri)), html)
  const kept = new Set(offered.map(({ uri }) => pageFile(uri)))
  for (const name of namesIn(own)) if (ownFile.test(name) && !kept.has(name)) rmSync(join(own, name))
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    // The backend had no pages when its lock was last written.
    return []
  }
}

/**
 * Compares pages with the locks of their backend. `folders` may contain the HTML of the approved pages. Returns
 * undefined if no lock contains pages, because the pages are then not compared.
 */
export function comparePages(
  backend: string,
  pages: readonly SurveyedPage[],
  locks: readonly Pick<ToolLockSpec, 'pages'>[],
  folders: readonly string[],
): { readonly pinned: number; readonly differences: readonly PageDifference[] } | undefined {
  const approved = locks.flatMap((lock) => lock.pages ?? [])
  if (!locks.some((lock) => lock.pages)) return undefined
  const offered = new Map(pages.map((page) => [page.uri, page]))
  const differences: PageDifference[] = []
  let pinned = 0
  for (const { uri, html } of pages) {
    if (!html) continue
    const known = approved.find((page) => page.uri === uri)
    const digest = pageDigest(html)
    if (known?.digest === digest) pinned++
    else if (!known)
      differences.push({ uri, state: 'new', digest, lines: [], cut: false, isWithoutDiff: true })
    else differences.push({ uri, state: 'changed', digest, ...diffOf(backend, known, html, folders) })
  }
  for (const { uri, digest } of approved) {
    const page = offered.get(uri)
    if (!page || (!page.html && !page.isListed))
      differences.push({ uri, state: 'removed', digest, lines: [], cut: false, isWithoutDiff: true })
  }
  return { pinned, differences }
}

function diffOf(
  backend: string,
  { uri, digest }: LockedPages[number],
  html: Buffer,
  folders: readonly string[],
): Pick<PageDifference, 'lines' | 'cut' | 'isWithoutDiff'> {
  for (const folder of folders) {
    const { bytes } = readFileOnDisk(join(folderOf(folder, backend), pageFile(uri)))
    if (bytes && pageDigest(bytes) === digest)
      return { ...textDiff(bytes.toString(), html.toString()), isWithoutDiff: false }
  }
  return { lines: [], cut: false, isWithoutDiff: true }
}

/** Returns the readable lines that describe a difference. */
export function differenceLines({ uri, state, lines, isWithoutDiff }: PageDifference): readonly string[] {
  const head = `  page ${visibleText(uri)} ${state}`
  if (state !== 'changed') return [head]
  return isWithoutDiff
    ? [`${head}: no file with the approved HTML; to store it, write the lock with -o`]
    : [head, '    html', ...lines.map((line) => `      ${line}`)]
}
