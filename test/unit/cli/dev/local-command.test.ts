/** `$(NAME)` in a local command refers to a variable of the container. */
import t from 'tap'
import { Addresses } from '../../../../runtime/toolkit/local/addresses.ts'
import { planOf } from '../../../../runtime/toolkit/local/plan.ts'
import type { LocalObject } from '../../../../runtime/toolkit/manifests/objects.ts'

t.test(
  'dev: the local command can use variables of the container, including those from Secrets',
  async (t) => {
    const secret: LocalObject = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: 'default' },
      stringData: { key: "it's $(X)" },
    }
    const line = `tool --key '$(KEY)' '$$(KEY)' --port {port}`
    const parent: LocalObject = {
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'MCPServer',
      metadata: { name: 'a', namespace: 'default', annotations: { 'gatehouse.dev/local-command': line } },
      spec: { transport: 'stdio' },
    }
    const container = {
      name: 'mcp',
      image: 'i',
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } }],
    }
    const workload: LocalObject = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'a', namespace: 'default' },
      spec: { template: { spec: { containers: [container] } } },
    }
    const plan = await planOf(workload, parent, {
      objects: [workload, secret],
      addresses: new Addresses(4483),
      folder: t.testdir({}),
      runtimeImage: 'runtime',
      self: ['gatehouse'],
      baseEnv: {},
      causesFile: '/nowhere/causes.json',
      consoleToken: 'launch',
      signInKey: 'sign-in',
      manifests: [],
    })
    if (typeof plan === 'string') return t.fail(plan)
    t.strictSame(plan.argv, ['tool', '--key', "it's $(X)", '$(KEY)', '--port', String(plan.port)])
  },
)
