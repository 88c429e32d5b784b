/**
 * Each client era with each backend era: tools with pages, tools that only pages call, and tasks with and without input
 * and with a cancellation, through plain calls, tool search, workflows and scripts, with policies. A cell contains the
 * steps that succeed, or the reason why the combination does not exist.
 */
import t, { type Test } from 'tap'
import {
  startExtensionTaskServer,
  startSessionTaskServer,
  type TaskServer,
} from '../../../helpers/conformance/task-servers.ts'
import {
  connectSessionClient,
  connectStatelessClient,
  type MatrixClient,
} from '../../../helpers/mcp/tasks/matrix-clients.ts'
import { tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { startClock } from '../extensions/clock-servers.ts'

t.setTimeout(240_000)

const eras = ['session', 'stateless'] as const
const connect = { session: connectSessionClient, stateless: connectStatelessClient }
const startTasks = { session: startSessionTaskServer, stateless: startExtensionTaskServer }
const policies = [
  'permit(principal, action, resource);',
  'forbid(principal, action == Action::"call_tool", resource == Tool::"protocol_error_job");',
]
const incomingAuth = { type: 'anonymous', authz: { type: 'cedar', policies, entitiesJson: '[]' } }
const longSeconds = 60

/** The tools of the cells, with their arguments. */
const tools = {
  app: { tool: 'show', args: {} },
  appOnly: { tool: 'refresh', args: {} },
  optional: { tool: 'slow_compute', args: { seconds: 0.3, label: 'optional' } },
  task: { tool: 'required_compute', args: { seconds: 0.3, label: 'soon' } },
  input: { tool: 'confirm_delete', args: { filename: 'notes' } },
  long: { tool: 'required_compute', args: { seconds: longSeconds, label: 'late' } },
  denied: { tool: 'protocol_error_job', args: {} },
} as const

type Call = (typeof tools)[keyof typeof tools]

const compositeTools = Object.entries(tools).map(([name, { tool, args }]) => ({
  name: `flow_${name}`,
  description: `Calls ${tool}.`,
  parameters: { type: 'object', properties: {} },
  steps: [{ id: 'only', type: 'tool', tool, arguments: args, timeout: '2m' }],
}))

interface Path {
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
  /** Returns the call that reaches a tool on this path. */
  through(call: Call): { readonly name: string; readonly args: object }
}

const nameOf = (call: Call): string => Object.entries(tools).find(([, one]) => one === call)?.[0] ?? ''
const paths: readonly Path[] = [
  { name: 'plain call', settings: {}, through: ({ tool, args }) => ({ name: tool, args }) },
  {
    name: 'tool search',
    settings: { optimizer: {} },
    through: ({ tool, args }) => ({ name: 'call_tool', args: { tool_name: tool, parameters: args } }),
  },
  { name: 'workflow', settings: {}, through: (call) => ({ name: `flow_${nameOf(call)}`, args: {} }) },
  {
    name: 'script',
    settings: { codeMode: { enabled: true } },
    through: ({ tool, args }) => ({
      name: 'execute_tool_script',
      args: {
        script: `return ${tool}(${Object.entries(args)
          .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
          .join(', ')})`,
      },
    }),
  },
]

for (const backendEra of eras)
  for (const path of paths)
    t.test(`${path.name}, backend of the ${backendEra} era`, async (t) => {
      const [clock, tasks] = [await startClock('clock', backendEra), await startTasks[backendEra]()]
      const vmcp = await startTestVmcp(
        { clock: clock.url, tasks: tasks.url },
        {
          aggregation: bareNames('clock', 'tasks'),
          ...tasksOn({ runAsTask: ['workflows', 'scripts', 'optionalTools'] }),
          ...{ compositeTools, incomingAuth },
          operational: { timeouts: { default: '2m' } },
          ...path.settings,
        },
      )
      t.teardown(() => Promise.all([vmcp.close(), clock.close(), tasks.close()]))
      for (const clientEra of eras) {
        const client = await connect[clientEra](vmcp.url)
        await t.test(`client of the ${clientEra} era`, (t) => checkCells(t, path, client, tasks))
      }
    })

/** Waits up to 15 seconds. */
async function until(isDone: () => boolean): Promise<void> {
  for (let i = 0; i < 300 && !isDone(); i++) await new Promise((resolve) => setTimeout(resolve, 50))
}

async function checkCells(t: Test, path: Path, client: MatrixClient, backend: TaskServer): Promise<void> {
  const call = ({ name, args }: ReturnType<Path['through']>) => client.call(name, args)
  const asTask = async ({ name, args }: ReturnType<Path['through']>) =>
    client.settle(await client.create(name, args))

  t.match(await call(path.through(tools.app)), /resource_link|ui:\/\/clock/, 'tool with a page')
  t.match(await call(path.through(tools.task)), /computed soon/, 'task, for a call without a task')
  t.match(await asTask(path.through(tools.task)), /computed soon/, 'task')
  t.match(await asTask(path.through(tools.optional)), /computed optional/, 'optional task')
  t.match(await call(path.through(tools.input)), /deleted notes/, 'input, for a call without a task')
  t.match(await asTask(path.through(tools.input)), /deleted notes/, 'input')

  const long = path.through(tools.long)
  const [created, cancelled] = [backend.created(), backend.cancelled()]
  const taskId = await client.create(long.name, long.args)
  // A workflow or a script may not have called the tool yet.
  await until(() => backend.created() === created + 1)
  t.equal(await client.cancel(taskId), 'cancelled')
  await until(() => backend.cancelled() === cancelled + 1)
  t.equal(backend.cancelled(), cancelled + 1, 'the task of the backend is cancelled')
  if (client.abandon) {
    await client.abandon(long.name, long.args, () => until(() => backend.created() === created + 2))
    await until(() => backend.cancelled() === cancelled + 2)
    t.equal(backend.cancelled(), cancelled + 2, 'also after the client has disconnected')
  }

  const appOnly = await call(path.through(tools.appOnly))
  // MCP Apps: a host hides tools without the visibility `model` from models. Search and scripts are for models.
  if (path.name === 'script') t.match(appOnly, /not defined|undefined|unknown/, 'tool that only pages call')
  else t.match(appOnly, /refresh of clock/, 'tool that only pages call')
  // The policies decide on the workflow. Its author is responsible for the steps.
  if (path.name !== 'workflow')
    t.match(await call(path.through(tools.denied)), /denied|not defined|undefined/, 'denied by a policy')
}
