/** The images: required and forbidden instructions of a Dockerfile, and a bundle that runs on its own. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')

interface Instruction {
  readonly name: string
  readonly rest: string
}

/** Returns the instructions in order, with joined continuation lines and without comments. */
function instructions(path: string): readonly Instruction[] {
  const text = readFileSync(join(root, path), 'utf8')
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
  return lines
    .map((line) => /^(\w+)\s+(.*)$/.exec(line.trim()))
    .filter((match) => match !== null)
    .map(([, name = '', rest = '']) => ({ name: name.toUpperCase(), rest: rest.trim() }))
}

const images = [
  { path: 'hooks/Dockerfile', program: 'gatehouse-hooks', options: [] },
  { path: 'runtime/Dockerfile', program: 'gatehouse', options: ['--max-semi-space-size=8'] },
]

for (const { path, program, options } of images) {
  const all = instructions(path)
  const of = (name: string) => all.filter((one) => one.name === name).map((one) => one.rest)
  const last = all.findLastIndex((one) => one.name === 'FROM')
  const final = all.slice(last)

  await t.test(`${path}: every base is pinned to an exact version`, async (t) => {
    const node = /^NODE=(\d+\.\d+\.\d+)$/.exec(of('ARG')[0] ?? '')?.[1]
    t.ok(node, 'the version of Node is exact')
    const declared: { engines: { node: string }; dependencies: { node: string } } = JSON.parse(
      readFileSync(join(root, 'package.json'), 'utf8'),
    )
    const { engines, dependencies } = declared
    t.equal(node, dependencies.node, 'and it is the version that the project is tested with')
    t.equal(Number(engines.node.match(/\d+/)?.[0]), Number(node?.split('.')[0]))
    t.strictSame(of('FROM'), [
      '--platform=$BUILDPLATFORM node:${NODE}-bookworm AS build',
      'node:${NODE}-bookworm-slim AS node',
      '${BASE}',
    ])
    t.match(of('ARG')[1], /^BASE=gcr\.io\/distroless\/cc-debian\d+:nonroot$/, 'it has no tags for versions')
  })

  await t.test(
    `${path}: no instruction runs in the final stage, which has no shell and may have another platform`,
    async (t) => {
      t.notOk(final.some((one) => one.name === 'RUN'))
      t.notOk(final.some((one) => one.rest.startsWith('/bin/')))
    },
  )

  await t.test(
    `${path}: the final stage runs as a numeric user that is not root, and starts without a shell`,
    async (t) => {
      const user = final.findLast((one) => one.name === 'USER')?.rest
      t.match(user, /^[1-9]\d*:[1-9]\d*$/)
      const entry = final.findLast((one) => one.name === 'ENTRYPOINT')?.rest
      t.strictSame(JSON.parse(entry ?? '""'), ['node', ...options, `/app/${program}.js`])
      t.notOk(
        final.some((one) => one.name === 'CMD'),
        'arguments come from the pod',
      )
      const userAt = final.findIndex((one) => one.name === 'USER')
      t.notOk(
        final.slice(userAt).some((one) => ['RUN', 'COPY'].includes(one.name)),
        'nothing is written after the user is set',
      )
    },
  )

  await t.test(
    `${path}: nothing is fetched by URL, no secret is included, and no whole folder is copied`,
    async (t) => {
      t.strictSame(of('ADD'), [])
      for (const rest of of('RUN')) t.notMatch(rest, /curl|wget|https?:\/\//)
      for (const rest of [...of('ENV'), ...of('ARG')]) t.notMatch(rest, /secret|token|password|key/i)
      for (const rest of of('COPY')) t.notMatch(rest, /^\.\s/, rest)
      t.ok(
        final.some((one) => one.rest.includes('sbom')),
        'the list of contents is in the image',
      )
    },
  )

  await t.test(`${path}: the copied files exist, and .dockerignore does not exclude them`, async (t) => {
    const allowed = new Set(
      readFileSync(join(root, '.dockerignore'), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('!'))
        .map((line) => line.slice(1)),
    )
    const sources = of('COPY')
      .filter((rest) => !rest.startsWith('--from'))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1))
    for (const source of sources) {
      t.ok(allowed.has(source.replace(/^\.\//, '')), `${source} is allowed`)
      t.ok(existsSync(join(root, source)), `${source} exists`)
    }
    const text = readFileSync(join(root, '.dockerignore'), 'utf8')
    t.ok(text.split('\n').includes('*'), 'all else stays out')
  })

  await t.test(`${path}: the build stage contains everything that its build needs`, async (t) => {
    const stage = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
    t.teardown(() => rmSync(stage, { recursive: true, force: true }))
    for (const rest of of('COPY').filter((one) => !one.startsWith('--from') && !one.includes('/app/'))) {
      const words = rest.split(/\s+/)
      for (const source of words.slice(0, -1))
        cpSync(join(root, source), join(stage, source), { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(stage, 'node_modules'))
    const [program = '', ...args]: string[] = JSON.parse(of('RUN').at(-1) ?? '[]')
    t.equal(program, 'node')
    const built = spawnSync(process.execPath, args, { cwd: stage, encoding: 'utf8', timeout: 120_000 })
    t.equal(built.status, 0, built.stderr)
    t.equal(built.stderr, '', 'no warnings')
    for (const rest of of('COPY').filter((one) => one.startsWith('--from=build'))) {
      const [, source = ''] = rest.split(/\s+/)
      t.ok(existsSync(join(stage, source.replace('/src/', ''))), source)
    }
  })

  const skip = !existsSync(join(root, 'dist', `${program}.js`)) && 'not built: run `make build`'
  await t.test(`${path}: the program starts with the contents of the image only`, { skip }, async (t) => {
    const app = mkdtempSync(join(tmpdir(), 'gatehouse-image-'))
    t.teardown(() => rmSync(app, { recursive: true, force: true }))
    for (const { rest } of final.filter((one) => one.name === 'COPY')) {
      if (rest.startsWith('--from=node')) continue
      const [source = '', target = ''] = rest.split(/\s+/).filter((word) => !word.startsWith('--'))
      cpSync(join(root, source.replace('/src/', '')), join(app, target), { recursive: true })
    }
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [join(app, 'app', `${program}.js`), ...args], {
        cwd: tmpdir(),
        env: {},
        encoding: 'utf8',
        timeout: 30_000,
      })
    const help = run('--help')
    t.equal(help.status, 0, help.stderr)
    t.match(help.stdout, program)
    t.match(readFileSync(join(app, 'app', `${program}.NOTICES.txt`), 'utf8'), /\nundici \d|\nexpress \d/)
    const sbom: { components: unknown[] } = JSON.parse(
      readFileSync(join(app, 'usr/share/sbom', `${program}.cdx.json`), 'utf8'),
    )
    t.ok(sbom.components.length > 20, 'the list of contents names the packages')
    if (program !== 'gatehouse') return
    const policy = run('validate', '-f', join(root, 'manifests/examples/authz'))
    t.equal(policy.status, 0, `the policy engine is included: ${policy.stderr}`)
  })
}
