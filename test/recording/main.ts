/**
 * Records the session that the clients guide shows: `make recording`. Installs the packed package into an empty folder,
 * and runs import, run, call and connect there. Each command and each line of output is real.
 *
 * Writes docs/images/recording.cast (asciicast v2) and docs/images/recording.svg, which shows the same in a browser.
 * Waits are shortened to a second and a half.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { castOf, svgOf } from './cast.ts'
import { Recorder } from './recorder.ts'

const root = resolve(import.meta.dirname, '../..')
const temp = mkdtempSync(join(tmpdir(), 'recording-'))
const home = join(temp, 'home')
const project = join(temp, 'project')
const tarball = readdirSync(root).find((name) => /^gatehouse-.*\.tgz$/.test(name))
if (tarball === undefined) throw new Error('there is no package: run make package first')

/** Files of a user of Cursor and Codex: two servers in Cursor, none in Codex. */
const cursor = {
  mcpServers: {
    everything: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
    memory: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-memory'],
      env: { API_KEY: 'not-a-real-key' },
    },
  },
}

mkdirSync(join(home, '.cursor'), { recursive: true })
mkdirSync(join(home, '.codex'), { recursive: true })
mkdirSync(project)
writeFileSync(join(home, '.cursor/mcp.json'), JSON.stringify(cursor, undefined, 2))
writeFileSync(join(home, '.codex/config.toml'), 'model = "gpt-5"\n')
writeFileSync(join(project, 'package.json'), '{"private":true}')
// The packages of the servers, as in a project that depends on them.
symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'))
symlinkSync(join(root, tarball), join(project, tarball))

const env: NodeJS.ProcessEnv = {
  HOME: home,
  TMPDIR: temp,
  PATH: [join(home, 'bin'), join(root, 'node_modules/.bin'), process.env['PATH'] ?? ''].join(':'),
  npm_config_prefix: home,
  npm_config_cache: join(temp, 'cache'),
  npm_config_offline: 'true',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
}
const recorder = new Recorder({ cwd: project, env })
const { recorded } = recorder

try {
  await recorder.run(`npm install --global ./${tarball}`)
  await recorder.run('gatehouse import cursor --save mcp')
  const gateway = recorder.start('gatehouse run --from cursor')
  await gateway.sees(/All servers are responding/)
  await recorder.run('gatehouse client add codex')
  await recorder.run('gatehouse tools call gatehouse everything_echo message=hello')
  await recorder.run('gatehouse client remove codex')
  gateway.interrupt()
  await gateway.ended
} finally {
  rmSync(temp, { recursive: true, force: true })
}
writeFileSync(join(root, 'docs/images/recording.cast'), castOf(recorded))
writeFileSync(
  join(root, 'docs/images/recording.svg'),
  svgOf(recorded, 'A terminal: install, import, run, call and connect'),
)
