/**
 * Packs the npm package, installs it into an empty folder, and runs it there.
 *
 * The installation reads only the tarball: the package has no dependencies, so npm never contacts the registry.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { home } from '../../schemas/index.ts'

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

t.test('package: runs on its own when installed from its tarball', { timeout: 120_000 }, async (t) => {
  const dir = t.testdir({ project: { 'package.json': '{"private":true}' } })
  const env = { ...process.env, HOME: dir, npm_config_cache: join(dir, 'cache'), npm_config_offline: 'true' }
  await run(process.execPath, [join(root, 'manifests/bundle/package.ts'), dir], { env })
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz')) ?? ''
  t.ok(statSync(join(dir, tarball)).size < 8_000_000, 'the tarball is small')

  const project = join(dir, 'project')
  await run('npm', ['install', '--no-audit', '--no-fund', join(dir, tarball)], { cwd: project, env })
  t.strictSame(
    readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.')),
    [home.npm.split('/')[0]],
  )
  const installed = join(project, 'node_modules', home.npm)
  for (const file of ['LICENSE', 'dist/gatehouse.NOTICES.txt', 'dist/gatehouse.cdx.json']) {
    t.ok(readFileSync(join(installed, file), 'utf8').length > 100, `${file} is in the package`)
  }

  const gatehouse = async (...args: string[]) =>
    await run(join(project, 'node_modules/.bin/gatehouse'), args, { cwd: project, env })
  t.match((await gatehouse('--version')).stdout, /^\d+\.\d+\.\d+\n$/)
  const authz = join(root, 'manifests/examples/authz')
  t.match(
    (await gatehouse('validate', '-f', authz)).stdout,
    /0 invalid/,
    'the package contains the policy engine',
  )
  const rendered = await gatehouse('render', '-f', join(root, 'manifests/examples/quickstart'))
  t.match(rendered.stdout, /kind: Deployment/)

  const bins = readdirSync(join(project, 'node_modules/.bin'))
  for (const bin of ['gatehouse', 'gatehouse-hooks', 'kubectl-gatehouse']) t.ok(bins.includes(bin), bin)
  const plugin = await run(join(project, 'node_modules/.bin/kubectl-gatehouse'), ['--help'], {
    cwd: project,
    env,
  })
  t.match(plugin.stdout, /^Usage: kubectl gatehouse [^]*\n  status [^]*\n  why [^]*\n  logs [^]*\n  connect /)

  env.HOME = join(dir, 'absent')
  t.match((await gatehouse('--version')).stdout, /^\d/)
  t.notOk(existsSync(env.HOME), 'a missing home folder is not created')
})

t.test('launcher: reports the required version to an old Node', async (t) => {
  const launcher = readFileSync(join(root, 'dist/gatehouse.js'), 'utf8')
  const dir = t.testdir({ 'package.json': '{"type":"module"}' })
  mkdirSync(join(dir, 'a folder/dist'), { recursive: true })
  // Every version of Node has this property, so another number simulates an older Node.
  const older = launcher.replace('process.versions.node', "'20.20.2'")
  t.not(older, launcher)
  const installed = join(dir, 'a folder')
  writeFileSync(join(installed, 'dist/gatehouse.js'), older)
  const ran = spawnSync(process.execPath, [join(installed, 'dist/gatehouse.js'), '--version'], {
    encoding: 'utf8',
  })
  t.equal(ran.status, 1)
  t.match(ran.stderr, /requires Node 24 or newer, but this is Node 20\.20\.2/)
  t.match(ran.stderr, `${home.repository}/releases`, 'names the download that needs no Node')
  t.ok(ran.stderr.includes(`npx --yes --package=node@24 --package="${installed}" gatehouse ...`), ran.stderr)
})
