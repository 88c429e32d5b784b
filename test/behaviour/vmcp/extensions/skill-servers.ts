/** Servers that publish skills with the official SDK's wire shapes, behind a virtual server, in both protocol eras. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { type AppServer, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { startPinned } from '../../../helpers/vmcp/pinning.ts'
import { clientOf, type Fields, type Request } from './clock-servers.ts'

export const skillsId = 'io.modelcontextprotocol/skills'

/** Files by path below the root of the skill. */
export type Files = Readonly<Record<string, string>>

export function manifestText(name: string, description = `How to use ${name}`, body = 'Do it.\n'): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}`
}

function digest(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

/** Returns the entry of a skill whose directory is `root`. */
export function entry(root: string, files: Files, more: Fields = {}): Fields {
  const name = root.slice(root.lastIndexOf('/') + 1)
  return {
    uri: `${root}/SKILL.md`,
    frontmatter: { name, description: `How to use ${name}` },
    resources: Object.entries(files).map(([path, text]) => ({
      uri: `${root}/${path}`,
      digest: digest(text),
      size: Buffer.byteLength(text),
    })),
    ...more,
  }
}

export function contentsOf(root: string, files: Files): Record<string, Fields> {
  return Object.fromEntries(
    Object.entries(files).map(([path, text]) => {
      const uri = `${root}/${path}`
      return [uri, { uri, mimeType: path.endsWith('.md') ? 'text/markdown' : 'text/plain', text }]
    }),
  )
}

export const refundFiles: Files = {
  'SKILL.md': manifestText('refunds'),
  'templates/mail.md': 'Dear customer\n',
  'templates/eu/mail.md': 'Dear European customer\n',
  'scripts/run.sh': 'echo refund\n',
}

export interface SkillServer extends AppServer {
  /** Listed entries. A test may replace them. */
  readonly skills: Fields[]
  /** Entries that `skills/get` returns in addition to the listed ones. */
  readonly unlisted: Fields[]
}

export interface SkillServerOptions {
  readonly name: string
  readonly era?: 'session' | 'stateless'
  readonly skills?: readonly Fields[]
  readonly unlisted?: readonly Fields[]
  readonly contents?: Record<string, Fields>
  readonly resources?: readonly Fields[]
  readonly templates?: readonly Fields[]
  readonly results?: Record<string, Fields>
  /** Directories that the server lists, by URI. By default, the server does not list directories. */
  readonly directories?: Readonly<Record<string, readonly Fields[]>>
  readonly ttlMs?: number
  readonly pageSize?: number
  readonly declares?: boolean
  /** The server responds to `skills/list` with something other than a list. */
  readonly isBroken?: boolean
}

export async function startSkillServer(t: Test, options: SkillServerOptions): Promise<SkillServer> {
  const { era = 'session', name, directories, ttlMs = 0, pageSize = 100, declares = true } = options
  const skills = [...(options.skills ?? [entry('skill://refunds', refundFiles)])]
  const unlisted = [...(options.unlisted ?? [])]
  const server = await startAppServer({
    era,
    name,
    tools: [{ name: 'link' }],
    resources: options.resources ?? [],
    templates: options.templates ?? [],
    results: options.results ?? {},
    contents: options.contents ?? contentsOf('skill://refunds', refundFiles),
    extensions: declares ? { [skillsId]: directories ? { directoryRead: true } : {} } : {},
    methods: {
      'skills/list': ({ cursor }) => {
        const from = Number(cursor ?? 0)
        const next = from + pageSize
        return {
          skills: options.isBroken ? {} : skills.slice(from, next),
          ...(next < skills.length && { nextCursor: String(next) }),
          ttlMs,
          cacheScope: 'public',
        }
      },
      'skills/get': ({ uri }) => {
        const skill = [...skills, ...unlisted].find((one) => one['uri'] === uri)
        return skill && { skill, ttlMs, cacheScope: 'public' }
      },
      ...(directories && {
        'resources/directory/read': ({ uri }: Fields) => {
          const resources = directories[String(uri)]
          return resources && { resources }
        },
      }),
    },
  })
  t.teardown(() => server.close())
  return Object.assign(server, { skills, unlisted })
}

/** Starts a virtual server with skills in front of servers. */
export async function startSkills(
  t: Test,
  servers: Readonly<Record<string, { readonly url: string }>>,
  more: Record<string, unknown> = {},
  skills: Record<string, unknown> = {},
) {
  const urls = Object.fromEntries(Object.entries(servers).map(([name, { url }]) => [name, url]))
  return startPinned(t, urls, { extensions: { skills: { enabled: true, ...skills } }, ...more })
}

export async function skillsOf(request: Request): Promise<Fields[]> {
  const response = await request('skills/list')
  if (!response?.result) throw new Error(JSON.stringify(response?.error))
  return response.result['skills'] as Fields[]
}

export { clientOf }
