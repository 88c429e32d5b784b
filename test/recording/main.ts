/**
 * Records what the README's first screen promises: `make recording`. Installs the packed package into an empty folder, and runs
 * install, import, run, call and connect there; each command and each line of output is real, as it came.
 *
 * Writes docs/images/recording.cast (asciicast v2) and docs/images/recording.svg, which shows the same in a browser. Waits are shortened to a
 * second and a half.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { castOf, type Recorded, svgOf } from './cast.ts'

const root = resolve(import.meta.dirname, '../..')
const temp = mkdtempSync(join(tmpdir(), 'recording-'))
const home = join(temp, 'home')
const project = join(temp, 'project')
const tarball = readdirSync(root).find((name) => /^gatehouse-.*\.tgz$/.test(name))
if (tarball === undefined) throw new Error('there is no package: run make package first')

/** What a person with Cursor and Codex has: two servers in the one, none in the other. */
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
// The packages of the servers, as they are in a project that has them.
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
const recorded: Recorded[] = []
const startedAt = performance.now()

function record(text: string): void {
  recorded.push({ atMs: performance.now() - startedAt, text })
}

interface Running {
  readonly ended: Promise<number | null>
  readonly sees: (pattern: RegExp) => Promise<void>
  readonly interrupt: () => void
}

function start(line: string): Running {
  record(`$ ${line}\n`)
  const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  const heard = new EventTarget()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      record(chunk)
      heard.dispatchEvent(new Event('text'))
    })
  }
  const ended = new Promise<number | null>((done) => child.once('close', done))
  return {
    ended,
    async sees(pattern) {
      const over = ended.then(() => 'over')
      while (!pattern.test(text)) {
        const more = new Promise((done) => heard.addEventListener('text', done, { once: true }))
        if ((await Promise.race([more, over])) === 'over')
          throw new Error(`ended without ${pattern}:\n${text}`)
      }
    },
    interrupt: () => child.kill('SIGINT'),
  }
}

async function run(line: string): Promise<void> {
  const code = await start(line).ended
  if (code !== 0) throw new Error(`"${line}" ended with code ${code}:\n${recorded.at(-1)?.text}`)
}

try {
  await run(`npm install --global ./${tarball}`)
  await run('gatehouse import cursor --save mcp')
  const gateway = start('gatehouse run --from cursor')
  await gateway.sees(/All servers are responding/)
  await run('gatehouse client add codex')
  await run('gatehouse tools call gatehouse everything_echo message=hello')
  await run('gatehouse client remove codex')
  gateway.interrupt()
  await gateway.ended
} finally {
  rmSync(temp, { recursive: true, force: true })
}
writeFileSync(join(root, 'docs/images/recording.cast'), castOf(recorded))
writeFileSync(join(root, 'docs/images/recording.svg'), svgOf(recorded))
process.stdout.write(recorded.map(({ text }) => text).join(''))
