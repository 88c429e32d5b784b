/** `gatehouse client link`: every link contains the server's name and URL as its client reads them, and nothing else. */
import t from 'tap'
import { connectPage } from '../../../runtime/console/data/connect.ts'
import type { ConsoleView } from '../../../runtime/console/view.ts'
import { argvServer, startRun } from '../../helpers/clients/run-rig.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(120_000)

interface Parsed {
  readonly name: unknown
  readonly url: unknown
  /** Names of the entry's other members. */
  readonly rest: readonly string[]
}

const fromEntry = (name: unknown, { url, ...rest }: Record<string, unknown>): Parsed => ({
  name,
  url,
  rest: Object.keys(rest),
})

function fromConfig(link: string): Parsed {
  const { searchParams } = new URL(link)
  const config = Buffer.from(searchParams.get('config') ?? '', 'base64').toString()
  return fromEntry(searchParams.get('name'), JSON.parse(config))
}

/** Reads each link as its client does. */
const readers: Readonly<Record<string, { readonly start: string; readonly read: (link: string) => Parsed }>> =
  {
    cursor: { start: 'cursor://anysphere.cursor-deeplink/mcp/install?', read: fromConfig },
    'lm-studio': { start: 'lmstudio://add_mcp?', read: fromConfig },
    vscode: {
      start: 'vscode:mcp/install?',
      read: (link) => {
        const { name, type, ...rest } = JSON.parse(decodeURIComponent(link.slice(link.indexOf('?') + 1)))
        return type === 'http' ? fromEntry(name, rest) : fromEntry(undefined, rest)
      },
    },
    goose: {
      start: 'goose://extension?',
      read: (link) => {
        const { name, id, type, ...rest } = Object.fromEntries(new URL(link).searchParams)
        return type === 'streamable_http' && id === name ? fromEntry(name, rest) : fromEntry(undefined, rest)
      },
    },
  }

interface Output {
  readonly links: readonly { readonly client: string; readonly title: string; readonly link: string }[]
}

async function linksOf(...args: string[]): Promise<Output['links']> {
  const { code, stdout, stderr } = await runGatehouse(['client', 'link', ...args, '-o', 'json'])
  if (code !== 0) throw new Error(stderr)
  return (JSON.parse(stdout) as Output).links
}

function parsed({ client, link }: { readonly client: string; readonly link: string }): Parsed | undefined {
  const reader = readers[client]
  return reader && link.startsWith(reader.start) ? reader.read(link) : undefined
}

const url = 'https://tools.example.com/team/mcp?x=a+b&ü=1'

t.test('client link: each client reads back the name and the URL', async (t) => {
  const links = await linksOf(url, '--name', 'team_tools')
  t.strictSame(links.map(({ client }) => client).toSorted(), Object.keys(readers).toSorted())
  for (const link of links)
    t.strictSame(parsed(link), { name: 'team_tools', url: new URL(url).href, rest: [] }, link.client)
  t.match(await runGatehouse(['client', 'link', url]), {
    code: 0,
    stdout: /^Cursor\n {2}cursor:.*\nVS Code\n {2}vscode:/,
  })
})

t.test('client link: a running server by name; warns if its port changes', async (t) => {
  const { url: running } = await startRun(t, [
    '--name',
    'link-member',
    '--group',
    'link-group',
    '--',
    ...argvServer,
  ])
  const links = await linksOf('link-group')
  t.equal(links.length, 4)
  for (const link of links) t.match(parsed(link), { name: 'link-group', url: running, rest: [] }, link.client)
  t.match(await runGatehouse(['client', 'link', 'link-member']), {
    code: 0,
    stderr: /link-member gets a new port at each start/,
  })
})

t.test('client link: rejects secrets and names that a client would not accept', async (t) => {
  const rows: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [
      ['https://a.example/mcp?api_key=canary-7f3a'],
      /contains a secret in the query.*; a link must not contain a secret/,
    ],
    [['https://a.example/mcp#access_token=canary-7f3a'], /contains a secret in the fragment/],
    [[`https://a.example/mcp#ghp_canary-7f3a${'0'.repeat(20)}`], /contains a secret in the fragment/],
    [['https://user:canary-7f3a@a.example/mcp'], /must not contain credentials/],
    [['https://a.example/mcp', '--name', 'a b'], /--name: must have 1 to 64 letters/],
    [['ftp://a.example/mcp'], /TARGET|no server named/],
  ]
  for (const [args, message] of rows) {
    const { code, stdout, stderr } = await runGatehouse(['client', 'link', ...args])
    t.not(code, 0, args.join(' '))
    t.equal(stdout, '')
    t.match(stderr, message)
    t.notMatch(stderr, 'canary-7f3a')
  }
})

t.test('console: the page Connect has the same links', (t) => {
  const view = ({ isLocalOnly }: { readonly isLocalOnly: boolean }) =>
    ({ server: 'Team Tools', connection: () => ({ url, auth: true, isLocalOnly }) }) as unknown as ConsoleView
  const { clients } = connectPage(view({ isLocalOnly: false }), undefined)
  const links = clients.flatMap(({ id, link }) => (link === undefined ? [] : [{ client: id, link }]))
  t.strictSame(links.map(({ client }) => client).toSorted(), Object.keys(readers).toSorted())
  for (const link of links) t.strictSame(parsed(link), { name: 'team-tools', url, rest: [] }, link.client)
  const local = connectPage(view({ isLocalOnly: true }), undefined).clients
  t.ok(local.every(({ link, add, command }) => link === undefined && (add ?? command) !== undefined))
  t.end()
})
