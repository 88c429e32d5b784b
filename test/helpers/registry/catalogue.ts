/** Starts a catalogue in process, for tests. */
import type { Test } from 'tap'
import { startCatalogue } from '../../../runtime/catalogue/index.ts'
import { validateRuntime } from '../../../schemas/index.ts'

export const publicServer = {
  name: 'com.example/open',
  title: 'Open tools',
  description: 'Tools for everyone',
  url: 'https://open.example.com/mcp',
  version: '1.0.3',
  publishedAt: '2026-01-31T10:00:00Z',
  public: true,
}
export const privateServer = {
  name: 'com.example/team',
  description: 'Tools of one team',
  url: 'https://team.example.com/mcp',
  version: '1.0.7',
}

/** Returns a checked configuration. Throws an error that lists the violations. */
export function catalogueConfig(more: object = {}) {
  const { config, violations } = validateRuntime('catalogue', {
    name: 'tools',
    incomingAuth: { type: 'anonymous' },
    servers: [publicServer, privateServer],
    ...more,
  })
  if (!config) throw new Error(JSON.stringify(violations))
  return config
}

export async function startTestCatalogue(t: Pick<Test, 'teardown'>, more: object = {}) {
  const catalogue = await startCatalogue(catalogueConfig(more), { host: '127.0.0.1', port: 0, env: {} })
  t.teardown(() => catalogue.close({ graceMs: 100 }))
  return catalogue
}

/** Returns the names that a catalogue lists. */
export async function namesIn(
  url: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<string[]> {
  const response = await fetch(`${url}/v0.1/servers${query}`, { headers })
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  const { servers } = (await response.json()) as { servers: { server: { name: string } }[] }
  return servers.map(({ server }) => server.name)
}
