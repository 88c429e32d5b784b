/** `install.sh` installs an executable only after verification; otherwise it keeps the old one. */
import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { formulaOf } from '../../../manifests/release/main.ts'
import { home } from '../../../schemas/index.ts'

const script = resolve(import.meta.dirname, '../../../manifests/release/install.sh')
const platform = `${process.platform}-${process.arch}`
const name = `gatehouse-1.2.3-${platform}.gz`
const program = gzipSync('#!/bin/sh\necho gatehouse 1.2.3\n')
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const skip = ['linux', 'darwin'].includes(process.platform) ? false : 'the script is for Linux and macOS'

const files = new Map<string, Buffer | string>()
const server = createServer(({ url = '' }, res) => {
  const file = files.get(url)
  res.writeHead(file === undefined ? 404 : 200).end(file ?? 'not found')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => server.close())
const releases = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** Publishes a release, as the latest one and under its version. */
function offer({ sums = `${sha256(program)}  ${name}\n`, bytes = program } = {}): void {
  files.clear()
  for (const folder of ['/latest/download', '/download/v1.2.3']) {
    files.set(`${folder}/SHA256SUMS`, sums)
    files.set(`${folder}/SHA256SUMS.sigstore.json`, '{}')
    files.set(`${folder}/${name}`, bytes)
  }
}

/** Runs the script with an empty PREFIX. `cosign` is the exit code of a stand-in for cosign. */
async function install(t: Test, { env = {}, cosign }: { env?: object; cosign?: number } = {}) {
  const folder = t.testdir({ tools: {}, prefix: {} })
  const prefix = join(folder, 'prefix')
  if (cosign !== undefined) {
    writeFileSync(
      join(folder, 'tools/cosign'),
      `#!/bin/sh\necho "$@" >${join(folder, 'cosign-args')}\nexit ${cosign}\n`,
    )
    chmodSync(join(folder, 'tools/cosign'), 0o755)
  }
  const child = spawn('sh', [script], {
    env: {
      HOME: folder,
      PATH: `${join(folder, 'tools')}${delimiter}${process.env['PATH']}`,
      RELEASES: releases,
      PREFIX: prefix,
      ...env,
    },
  })
  const output: Buffer[] = []
  child.stdout.on('data', (piece: Buffer) => output.push(piece))
  child.stderr.on('data', (piece: Buffer) => output.push(piece))
  const [code]: number[] = await once(child, 'close')
  const args = join(folder, 'cosign-args')
  return {
    code,
    output: Buffer.concat(output).toString(),
    bin: join(prefix, 'bin'),
    installed: existsSync(join(prefix, 'bin/gatehouse')),
    cosignArgs: existsSync(args) ? readFileSync(args, 'utf8') : undefined,
  }
}

t.test('installs the newest release, or the given version', { skip }, async (t) => {
  offer()
  for (const env of [{}, { VERSION: '1.2.3' }]) {
    const { code, output, bin } = await install(t, { env })
    t.equal(code, 0, output)
    t.match(output, `Installed ${bin}/gatehouse`)
    t.match(output, 'PATH')
    t.equal(readFileSync(join(bin, 'gatehouse'), 'utf8'), '#!/bin/sh\necho gatehouse 1.2.3\n')
    t.same(readdirSync(bin), ['gatehouse'])
  }
})

t.test('installs nothing unless the checksum matches', { skip }, async (t) => {
  offer({ bytes: gzipSync('something else') })
  const changed = await install(t)
  t.not(changed.code, 0)
  t.match(changed.output, 'checksum')
  t.notOk(changed.installed)

  offer({ sums: `${sha256(program)}  gatehouse-1.2.3-plan9-mips.gz\n` })
  const absent = await install(t)
  t.not(absent.code, 0)
  t.match(absent.output, `no executable for ${platform}`)

  offer({ sums: `${sha256(program)}  ${name.replace('1.2.3', '1.2.2')}\n` })
  const older = await install(t, { env: { VERSION: '1.2.3' } })
  t.not(older.code, 0)
  t.match(older.output, 'expected version 1.2.3, found 1.2.2')
  t.notOk(older.installed)

  files.clear()
  const gone = await install(t, { env: { VERSION: '9.9.9' } })
  t.not(gone.code, 0)
  t.match(gone.output, `could not download ${releases}/download/v9.9.9/SHA256SUMS`)
})

t.test('verifies the signature if cosign is installed, or on demand', { skip }, async (t) => {
  offer()
  const good = await install(t, { cosign: 0 })
  t.equal(good.code, 0, good.output)
  t.match(good.cosignArgs, `${home.repository}/.github/workflows/release.yml@refs/tags/v1.2.3`)

  const bad = await install(t, { cosign: 1 })
  t.not(bad.code, 0)
  t.match(bad.output, 'signature of SHA256SUMS is invalid')
  t.notOk(bad.installed)

  const without = await install(t, { env: { VERIFY: 'signature' } })
  t.not(without.code, 0)
  t.match(without.output, 'cosign is required')
  t.notOk(without.installed)
})

t.test('replaces an installed executable', { skip }, async (t) => {
  offer()
  const prefix = t.testdir({ bin: { gatehouse: 'old' } })
  const { code, output } = await install(t, { env: { PREFIX: prefix } })
  t.equal(code, 0, output)
  t.match(readFileSync(join(prefix, 'bin/gatehouse'), 'utf8'), '1.2.3')
})

t.test('the formula lists the executables with their checksums', (t) => {
  const platforms = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']
  const sums = platforms.map((one, index) => `${String(index).repeat(64)}  gatehouse-1.2.3-${one}.gz`)
  const formula = formulaOf('1.2.3', sums.join('\n'))
  for (const [index, one] of platforms.entries())
    t.match(
      formula,
      `url "${home.repository}/releases/download/v1.2.3/gatehouse-1.2.3-${one}.gz"\n      sha256 "${String(index).repeat(64)}"`,
    )
  t.throws(() => formulaOf('1.2.3', sums.slice(1).join('\n')), {
    message: /gatehouse-1\.2\.3-darwin-arm64\.gz/,
  })
  t.end()
})
