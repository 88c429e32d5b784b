/** Packages of local servers are fetched once, before the servers start, and a broken cache is reported with its repair. */
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { brokenCacheCause, PackageFetcher } from '../../../../runtime/toolkit/local/processes/packages.ts'

/** Programs in PATH that record their arguments. `script` is the rest of the shell script. */
function rig(t: Test, programs: Readonly<Record<string, string>>) {
  const home = t.testdir({})
  const bin = join(home, 'bin')
  const calls = join(home, 'calls')
  mkdirSync(bin)
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> "${calls}"\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const lines: string[] = []
  const fetcher = new PackageFetcher((line) => lines.push(line))
  t.teardown(() => fetcher.stop())
  const spec = (...argv: string[]) => ({
    argv,
    cwd: home,
    env: { HOME: home, PATH: `${bin}:${process.env['PATH']}` },
  })
  const read = () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : [])
  return { fetcher, spec, lines, calls: read, home }
}

function npxFolder(home: string, spec: string): string {
  return join(home, '.npm', '_npx', createHash('sha512').update(spec).digest('hex').slice(0, 16))
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function install(home: string, spec: string, name: string): string {
  const modules = join(npxFolder(home, spec), 'node_modules')
  write(join(modules, '.package-lock.json'), '{}')
  write(join(modules, name, 'package.json'), JSON.stringify({ name, bin: 'cli.js' }))
  write(join(modules, name, 'cli.js'), '')
  return modules
}

t.test('packages: servers with the same package share one fetch, whose progress is reported', async (t) => {
  const { fetcher, spec, lines, calls } = rig(t, { npx: '' })
  const command = spec('npx', '-y', '@acme/files@1', '.')
  t.equal(fetcher.missing(command), 'npx package @acme/files@1')
  t.strictSame(await Promise.all([fetcher.fetch(command), fetcher.fetch(spec('npx', '@acme/files', '/x'))]), [
    undefined,
    undefined,
  ])
  t.strictSame(calls(), ['npx --yes --package=@acme/files@1 -- node --eval '.trim()])
  t.match(lines, [
    'Installing npx package @acme/files@1 …',
    /^Installed npx package @acme\/files@1 in \d+ s\.$/,
  ])
})

t.test('packages: an installed package and other commands are not fetched', async (t) => {
  const { fetcher, spec, lines, calls, home } = rig(t, { npx: '', docker: 'exit 0' })
  install(home, 'files', 'files')
  for (const argv of [
    ['npx', 'files'],
    ['node', 'x.js'],
    ['npx', '--weird', 'x'],
    ['docker', 'ps'],
  ]) {
    t.equal(fetcher.missing(spec(...argv)), undefined)
    t.equal(await fetcher.fetch(spec(...argv)), undefined)
  }
  t.strictSame([calls(), lines], [[], []])
})

t.test('packages: a failed fetch reports the reason of the package manager once', async (t) => {
  const { fetcher, spec, lines } = rig(t, {
    npx: 'echo "npm error code E404" >&2; echo "npm error 404 Not Found - GET /none" >&2; exit 1',
  })
  const command = spec('npx', 'none')
  const cause = {
    category: 'package_failed',
    detail: 'npx package none: npm error 404 Not Found - GET /none',
  }
  t.match(await fetcher.fetch(command), cause)
  t.match(await fetcher.fetch(command), cause, 'retried')
  t.match(lines, [/^Installing/, 'Could not install npx package none.'], 'reported once')
  const offline = rig(t, { npx: 'echo "npm error code ENOTFOUND" >&2; exit 1' })
  t.match(await offline.fetcher.fetch(offline.spec('npx', 'none')), { fix: /network connection/ })
})

t.test('packages: a broken entry in the cache is reported with the command that removes it', async (t) => {
  const { fetcher, spec, home } = rig(t, { npx: '' })
  for (const broken of ['.package-lock.json', 'files/cli.js', 'files/package.json']) {
    const modules = install(home, 'files', 'files')
    const path = join(modules, broken)
    rmSync(path)
    t.match(await fetcher.fetch(spec('npx', 'files')), {
      category: 'package_cache_broken',
      fix: `run: rm -rf ${npxFolder(home, 'files')}`,
    })
  }
  const racing = rig(t, { npx: 'echo "npm error code ENOTEMPTY" >&2; exit 1' })
  t.match(await racing.fetcher.fetch(racing.spec('npx', 'files')), {
    category: 'package_cache_broken',
    fix: `run: rm -rf ${npxFolder(racing.home, 'files')}`,
  })
})

t.test('packages: a program that cannot find a file of its installation has a broken cache', async (t) => {
  const folder = '/home/ada/.npm/_npx/0123456789abcdef'
  t.match(brokenCacheCause([`Error: Cannot find module '${folder}/node_modules/x/dist/a.js'`]), {
    category: 'package_cache_broken',
    fix: `run: rm -rf ${folder}`,
  })
  t.equal(brokenCacheCause(["Error: Cannot find module '/srv/a.js'"]), undefined)
  t.equal(brokenCacheCause([`Error: boom\n at ${folder}/node_modules/x/a.js`]), undefined)
})

t.test('packages: uvx installs without starting the server', async (t) => {
  const { fetcher, spec, calls } = rig(t, { uvx: 'case "$1" in --offline) exit 1;; esac' })
  t.equal(
    await fetcher.fetch(spec('uvx', '--python', '3.12', 'mcp-server-git@1.2', '--repository', '.')),
    undefined,
  )
  t.match(calls(), [
    /^uvx --offline --python 3\.12 --from mcp-server-git==1\.2 python -c/,
    /^uvx --python 3\.12 --from mcp-server-git==1\.2 python -c/,
  ])
})

t.test('packages: an image is pulled if it is missing', async (t) => {
  const { fetcher, spec, calls } = rig(t, { docker: 'test "$1" = pull' })
  t.equal(
    await fetcher.fetch(spec('docker', 'run', '-i', '--rm', '-e', 'KEY', 'mcp/time', '--utc')),
    undefined,
  )
  t.strictSame(calls(), ['docker image inspect mcp/time', 'docker pull mcp/time'])
  const present = rig(t, { docker: '' })
  await present.fetcher.fetch(present.spec('docker', 'run', 'mcp/time'))
  t.strictSame([present.calls(), present.lines], [['docker image inspect mcp/time'], []])
  const down = rig(t, { docker: 'echo "Cannot connect to the Docker daemon at x" >&2; exit 1' })
  t.match(await down.fetcher.fetch(down.spec('docker', 'run', 'mcp/time')), {
    fix: 'start the container engine',
  })
})

t.test('packages: an untrusted certificate is not reported as a wrong package', async (t) => {
  const causes = [
    ['npx', 'npm error code SELF_SIGNED_CERT_IN_CHAIN', /^set NODE_EXTRA_CA_CERTS /],
    ['npx', 'npm error code UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /^set NODE_EXTRA_CA_CERTS /],
    ['npx', 'npm error unable to verify the first certificate', /^set NODE_EXTRA_CA_CERTS /],
    ['uvx', 'invalid peer certificate: UnknownIssuer', /^set SSL_CERT_FILE /],
    ['docker', 'tls: x509: certificate signed by unknown authority', /in the container engine$/],
  ] as const
  for (const [program, output, fix] of causes) {
    const { fetcher, spec } = rig(t, { [program]: `echo "${output}" >&2; exit 1` })
    const argv = program === 'docker' ? [program, 'run', 'mcp/time'] : [program, 'mcp-time']
    t.match(await fetcher.fetch(spec(...argv)), { category: 'package_failed', fix }, output)
  }
})
