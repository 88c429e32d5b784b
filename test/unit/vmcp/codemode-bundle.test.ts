/** Scripts in a built program: one bundled file, the worker's beside it, nothing else of the sources. */
import { execFile } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../manifests/bundle/options.ts'
import { scriptWorker, workerFile } from '../../../runtime/vmcp/workers/index.ts'

const root = resolve(import.meta.dirname, '../../..')
const folder = join(root, 'runtime/vmcp')

const program = `
import { makeCodeMode, codeModeViolations } from ${JSON.stringify(join(folder, 'codemode/index.ts'))}
import { ownOperation, resultOutcome } from ${JSON.stringify(join(folder, 'pipeline/operation.ts'))}
const settings = { stepLimit: 1000, parallelMaxConcurrency: 2, toolCallTimeoutMs: 5000, scriptTimeoutMs: 5000, maxBytes: 1e7, maxScriptLength: 1e4 }
const problems = codeModeViolations({ enabled: true })
if (problems.length > 0) throw new Error(problems.join())
const feature = makeCodeMode(settings, { audit: { enabled: false }, log: console })
const client = { era: 'session', caller: { key: 'k' } }
const call = { name: 'execute_tool_script', arguments: { script: 'return [t(x=i)["x"] for i in range(3)]' } }
const inside = async ({ method, params }) => method === 'tools/list'
  ? resultOutcome({ tools: [{ name: 't', inputSchema: { type: 'object' } }] })
  : resultOutcome({ content: [], structuredContent: params.value('arguments') })
const outcome = await feature.tools[0].run(ownOperation(client, 'tools/call', call, new AbortController().signal), inside)
console.log(outcome.result.toString())
await feature.close()
`

const options = {
  ...bundleOptions,
  logLevel: 'silent',
} as const

for (const ending of ['js', 'mjs']) {
  t.test(`bundle: a script runs, program and worker ending in .${ending}`, async (t) => {
    const dir = t.testdir({ 'package.json': '{"type":"module"}' })
    const outfile = join(dir, `program.${ending}`)
    await build({
      ...options,
      outfile,
      stdin: { contents: program, resolveDir: root, loader: 'ts' },
    })
    await build({
      ...options,
      outfile: join(dir, `script-worker.${ending}`),
      entryPoints: [join(folder, 'codemode/worker.ts')],
    })
    const run = () => promisify(execFile)(process.execPath, [outfile], { cwd: '/' })
    const { stdout, stderr } = await run()
    t.equal(stderr, '')
    t.same(JSON.parse(stdout), { content: [{ type: 'text', text: '[0,1,2]' }] })
    renameSync(join(dir, `script-worker.${ending}`), join(dir, 'elsewhere'))
    await t.rejects(run(), {
      message: new RegExp(`script-worker\\.${ending} is missing; it belongs beside the program`),
    })
    rmSync(dir, { recursive: true })
  })
}

t.test('source: the worker is the file of its module', (t) => {
  t.equal(workerFile(scriptWorker).pathname, join(folder, 'codemode/worker.ts'))
  t.end()
})
