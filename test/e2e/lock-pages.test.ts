/** `gatehouse lock` writes the pages of MCP Apps, and shows how they have changed. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { program } from '../helpers/gatehouse.ts'
import { type AppServer, page, startAppServer } from '../helpers/mcp/app-server.ts'

t.setTimeout(600_000)

const view = 'ui://clock/view.html'
const listed = 'ui://clock/../listed?x=1'
const html = `<p>${'a'.repeat(300)}</p><script>const now = 1;draw(now)</script>`

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

async function start(
  t: Test,
): Promise<{ clock: AppServer; path: string; lock: (...args: string[]) => Promise<Ended> }> {
  const clock = await startAppServer({
    name: 'clock',
    era: 'session',
    tools: [
      { name: 'show', _meta: { ui: { resourceUri: view } } },
      { name: 'other', _meta: { 'ui/resourceUri': view } },
    ],
    resources: [
      { uri: listed, name: 'listed', mimeType: 'text/html;profile=mcp-app' },
      { uri: 'file:///x', name: 'x' },
    ],
    contents: {
      [view]: page(view, html),
      [listed]: page(listed, 'listed'),
      'ui://clock/hidden': page('ui://clock/hidden', 'hidden'),
    },
  })
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-lock-'))
  t.teardown(async () => {
    rmSync(path, { recursive: true, force: true })
    await clock.close()
  })
  return { clock, path, lock: (...args) => gatehouse('lock', '--url', `clock=${clock.url}`, ...args) }
}

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function gatehouse(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => void (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (text.err += chunk.toString()))
  return new Promise((end) => child.on('close', (code) => end({ code, ...text })))
}

t.test('lock: pages are written with their HTML, and compared with a diff', async (t) => {
  const { clock, path, lock } = await start(t)
  t.match(await lock('-o', path), { code: 0, err: '', out: /2 tools, about \d+ tokens in a list, 2 pages/ })
  const file = join(path, 'clock.lock.yaml')
  t.same(parse(readFileSync(file, 'utf8')).spec.pages, [
    { uri: listed, digest: digestOf('listed') },
    { uri: view, digest: digestOf(html) },
  ])
  const files = readdirSync(join(path, 'clock.pages'))
  t.match(files, [/^clock-listed-x-1-[0-9a-f]{32}\.html$/, /^clock-view-html-[0-9a-f]{32}\.html$/])
  t.same(
    files.map((name) => readFileSync(join(path, 'clock.pages', name), 'utf8')),
    ['listed', html],
  )
  t.match(await lock('-f', path, '--check'), { code: 0, err: '', out: /clock: in sync, 4 pinned/ })
  t.match(await gatehouse('validate', '-f', file), { code: 0 })

  clock.contents[view] = page(view, html.replace('draw(now)', 'draw(now);send(\u202e"secret")'))
  const checked = await lock('-f', path, '--check')
  t.match(checked, {
    code: 1,
    out: /clock: 1 changed, 0 new, 0 removed\n {2}page ui:\/\/clock\/view.html changed\n {4}html\n/,
  })
  t.match(
    checked.out,
    /\n {7}const now = 1;\n {6}-draw\(now\)<\/script>\n {6}\+draw\(now\);\n {6}\+send\(\\u\{202e\}"secret"\)<\/script>\n/,
  )
  const json = JSON.parse((await lock('-f', path, '--check', '--format', 'json')).out)
  t.match(json, {
    inSync: false,
    backends: [
      {
        counts: { changed: 1, new: 0, pinned: 3 },
        drift: [{ kind: 'page', name: view, state: 'changed', parts: ['html'] }],
      },
    ],
  })
  t.match(json.backends[0].drift[0].diff, [{ part: 'html', cut: false }])

  rmSync(join(path, 'clock.pages'), { recursive: true })
  t.match(await lock('-f', path, '--check'), {
    code: 1,
    out: /view.html changed: no file with the approved HTML/,
  })
  t.match(await lock('-f', path, '-o', path), { code: 0 })
  t.match(await lock('-f', path, '--check'), { code: 0 })
})

t.test('lock: pages that are new, removed, unlisted, unreadable or varying', async (t) => {
  const { clock, path, lock } = await start(t)
  t.match(await lock('-o', path), { code: 0 })
  const file = join(path, 'clock.lock.yaml')
  const written = readFileSync(file, 'utf8')
  const pages = (list: readonly (readonly [string, string])[]) =>
    writeFileSync(
      file,
      written.replace(
        /\n {2}pages:[^]*$/,
        `\n  pages: ${JSON.stringify(list.map(([uri, text]) => ({ uri, digest: digestOf(text) })))}\n`,
      ),
    )
  pages([
    [view, html],
    ['ui://clock/hidden', 'hidden'],
    ['ui://clock/gone', 'gone'],
  ])
  t.match(await lock('-f', path, '--check'), {
    code: 1,
    out: /clock: 0 changed, 1 new, 1 removed\n {2}page ui:\/\/clock\/..\/listed\?x=1 new\n {2}page ui:\/\/clock\/gone removed\n/,
  })
  t.match(await lock('-f', path, '-o', path), { code: 0 })
  t.same(
    parse(readFileSync(file, 'utf8')).spec.pages.map(({ uri }: { uri: string }) => uri),
    [listed, 'ui://clock/hidden', view],
    'an unlisted page is kept while the backend has it',
  )
  t.equal(readdirSync(join(path, 'clock.pages')).length, 3)

  delete clock.contents[view]
  delete clock.contents['ui://clock/hidden']
  const unread = await lock('-f', path, '-o', path)
  t.match(unread, { code: 2, err: /clock: cannot read page ui:\/\/clock\/view.html: / })
  t.same(parse(readFileSync(file, 'utf8')).spec.pages, [
    { uri: listed, digest: digestOf('listed') },
    { uri: view, digest: digestOf(html) },
  ])
  t.equal(readdirSync(join(path, 'clock.pages')).length, 2, 'the file of a removed page is deleted')
  t.match(await lock('-f', path, '--check'), { code: 2, err: /cannot read page/ })

  writeFileSync(file, written.replace(/\n {2}pages:[^]*$/, '\n'))
  let count = 0
  Object.defineProperty(clock.contents, view, { get: () => page(view, String(count++)), enumerable: true })
  t.match(await lock('-f', path, '--check'), {
    code: 0,
    err: /clock: 2 pages not compared: write the lock again/,
  })
  t.match(await lock('-o', path), { code: 0, err: /page ui:\/\/clock\/view.html differs between two reads/ })
})

t.test('lock: a page that is too large or has several contents is not locked', async (t) => {
  const { clock, lock } = await start(t)
  clock.contents[view] = page(view, 'x'.repeat(4 * 1024 * 1024))
  clock.contents[listed] = { uri: listed }
  const { code, err, out } = await lock()
  t.equal(code, 2)
  t.match(err, /cannot read page ui:\/\/clock\/view.html: it is larger than 4194304 bytes/)
  t.match(err, /cannot read page ui:\/\/clock\/..\/listed\?x=1: /)
  t.notOk(parse(out).spec.pages)
})
