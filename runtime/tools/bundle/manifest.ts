/**
 * The content of an MCPB bundle that connects a client to a remote server with `gatehouse proxy stdio`. Contains no
 * secrets: the user logs in when the server requires it.
 * Source: MCPB manifest, version 0.4.
 */
import { invalidConfig } from '../../../schemas/index.ts'
import { secretInUrl } from '../../toolkit/clients/index.ts'

export interface BundleOptions {
  readonly url: string
  readonly name?: string | undefined
  readonly title?: string | undefined
  /** Version of the bundle. */
  readonly bundleVersion: string
  readonly author?: string | undefined
  readonly remoteAuth: boolean
  /** Run the installed `gatehouse` instead of downloading this version of the npm package. */
  readonly installed: boolean
}

export interface BundleFile {
  readonly path: string
  readonly text: string
}

export interface BundleContent {
  readonly name: string
  readonly files: readonly BundleFile[]
}

const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
const versionPattern = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/
const launcher = 'server/index.mjs'

/** `program` is the name and version of the npm package. Throws INVALID_CONFIG for invalid options. */
export function bundleOf(options: BundleOptions, program: { name: string; version: string }): BundleContent {
  const { bundleVersion, title, author, remoteAuth, installed } = options
  const url = urlOf(options.url)
  const name = options.name ?? nameOf(url)
  if (!namePattern.test(name))
    throw invalidConfig(
      `--name: expected at most 64 lowercase letters, digits and hyphens, got ${JSON.stringify(name)}`,
    )
  if (!versionPattern.test(bundleVersion))
    throw invalidConfig(
      `--bundle-version: expected a version such as 1.0.0, got ${JSON.stringify(bundleVersion)}`,
    )
  const proxy = ['proxy', 'stdio', url.href, ...(remoteAuth ? ['--remote-auth'] : [])]
  const npx = ['--yes', `--package=${program.name}@${program.version}`, '--', 'gatehouse']
  const manifest = {
    manifest_version: '0.4',
    name,
    ...(title !== undefined && { display_name: title }),
    version: bundleVersion,
    description: `Connects to the MCP server at ${url.host}.`,
    author: { name: author ?? url.host },
    server: {
      type: 'node',
      entry_point: launcher,
      mcp_config: installed
        ? { command: 'gatehouse', args: proxy, env: {} }
        : { command: 'npx', args: [...npx, ...proxy], env: {} },
    },
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: ['darwin', 'linux', 'win32'] },
  }
  return {
    name,
    files: [
      { path: 'manifest.json', text: `${JSON.stringify(manifest, undefined, 2)}\n` },
      { path: launcher, text: launcherText },
    ],
  }
}

function urlOf(text: string): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw invalidConfig(`URL: expected an http or https URL, got ${JSON.stringify(text.slice(0, 200))}`)
  const secret = secretInUrl(url)
  if (secret !== undefined) throw invalidConfig(`URL: ${secret}; a bundle must not contain secrets`)
  if (url.hash !== '') throw invalidConfig('URL: must not contain a fragment')
  // Clients replace variables such as ${HOME} in arguments.
  if (url.href.includes('${')) throw invalidConfig('URL: must not contain ${')
  return url
}

function nameOf({ hostname }: URL): string {
  return hostname
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 64)
    .replace(/-+$/, '')
}

/** Runs the manifest's command, for clients that run the entry point instead. */
const launcherText = `import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../manifest.json', import.meta.url), 'utf8'))
const { command, args } = manifest.server.mcp_config
const child = spawn(command, args, { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(\`cannot start \${command}: \${error.message}\`)
  process.exitCode = 1
})
child.on('exit', (code) => {
  process.exit(code ?? 1)
})
`
