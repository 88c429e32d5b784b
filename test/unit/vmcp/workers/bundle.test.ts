/** Worker threads in a built program: their files are next to the program, and no other source is needed. */
import { execFile } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions, bundleParts } from '../../../../manifests/bundle/options.ts'
import { workerFile } from '../../../../runtime/process/threads/worker-file.ts'
import { scriptWorker } from '../../../../runtime/vmcp/features/scripts/feature.ts'
import { workflowWorker } from '../../../../runtime/vmcp/features/workflows/evaluation/evaluator.ts'

const root = resolve(import.meta.dirname, '../../../..')
const module = join(root, 'runtime/vmcp')
const from = (path: string) => JSON.stringify(join(module, path))

const script = `
import { makeCodeMode } from ${from('features/scripts/feature.ts')}
import { codeModeViolations } from ${from('features/scripts/index.ts')}
import { ownOperation } from ${from('model/operation.ts')}
import { resultOutcome } from ${from('model/outcome.ts')}
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

const workflow = `
import { workerViolations } from ${from('../process/index.ts')}
import { workflowWorker } from ${from('features/workflows/index.ts')}
import { compileProgram } from ${from('features/workflows/evaluation/program.ts')}
import { shared } from ${from('features/workflows/evaluation/state.ts')}
import { Evaluator, evaluatorLimits } from ${from('features/workflows/evaluation/evaluator.ts')}
const problems = workerViolations(workflowWorker)
if (problems.length > 0) throw new Error(problems.join())
const program = compileProgram({
  name: 'w',
  steps: [],
  parameters: { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } },
  output: { properties: { s: { type: 'string', value: '{{.params.s}}!' } } },
})
const evaluator = new Evaluator(console, { ...evaluatorLimits, turnWork: 0 })
const state = { args: shared(Buffer.from('{"s":"aaa"}')), steps: new Map(), workflow: { step_count: 0, duration_ms: 0 } }
const requester = { client: { caller: { key: 'k' } }, signal: new AbortController().signal, budget: { spent: 0 } }
await evaluator.evaluate(program, state, { kind: 'check' }, requester)
const result = await evaluator.evaluate(program, state, { kind: 'output' }, requester)
console.log(Buffer.from(result).toString())
await evaluator.close()
`

const programs = [
  {
    worker: scriptWorker,
    text: script,
    printed: { content: [{ type: 'text', text: '[0,1,2]' }] },
  },
  {
    worker: workflowWorker,
    text: workflow,
    printed: { content: [{ type: 'text', text: '{"s":"aaa!"}' }], structuredContent: { s: 'aaa!' } },
  },
]

const options = {
  ...bundleOptions,
  logLevel: 'silent',
} as const

for (const { worker, text, printed } of programs) {
  for (const ending of ['js', 'mjs']) {
    t.test(`bundle: ${worker.name} runs when program and worker end in .${ending}`, async (t) => {
      const dir = t.testdir({ 'package.json': '{"type":"module"}' })
      const outfile = join(dir, `program.${ending}`)
      await build({
        ...options,
        outfile,
        stdin: { contents: text, resolveDir: root, loader: 'ts' },
      })
      await build({
        ...options,
        outfile: join(dir, `${worker.name}.${ending}`),
        entryPoints: [workerFile(worker).pathname],
      })
      await build({
        ...options,
        absWorkingDir: root,
        outdir: dir,
        outExtension: { '.js': `.${ending}` },
        entryPoints: bundleParts,
      })
      const run = () => promisify(execFile)(process.execPath, [outfile], { cwd: '/' })
      const { stdout, stderr } = await run()
      t.equal(stderr, '')
      t.same(JSON.parse(stdout), printed)
      renameSync(join(dir, `${worker.name}.${ending}`), join(dir, 'elsewhere'))
      await t.rejects(run(), {
        message: new RegExp(`${worker.name}\\.${ending} is missing; the file must be next to the program`),
      })
      rmSync(dir, { recursive: true })
    })
  }
}

t.test('source: the workers are the files of their modules', async (t) => {
  t.equal(workerFile(scriptWorker).pathname, join(module, 'features/scripts/worker.ts'))
  t.equal(workerFile(workflowWorker).pathname, join(module, 'features/workflows/evaluation/worker.ts'))
})
