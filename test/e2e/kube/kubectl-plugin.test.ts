/**
 * Runs `kubectl gatehouse` against a real API server. Statuses and workloads come from a real sync of the hooks. The
 * test writes pods and their states like kubelet and controllers.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'
import { resource, type Stored, World } from '../../hooks/world.ts'

t.setTimeout(300_000)

const secretValue = 'c2VjcmV0LXZhbHVl'

await t.test('kubectl gatehouse with a real API server', { skip: kubeMissing() }, async (t) => {
  const kube = await startKubeApiserver(t)
  const home = join(t.testdir({}), 'absent')
  const apply = (...items: object[]) =>
    kube.must(
      ['apply', '--server-side', '--force-conflicts', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    )
  const setStatus = (kind: string, name: string, status: object) =>
    kube.must([
      'patch',
      kind,
      name,
      '-n',
      'team',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ])

  async function run(args: readonly string[], kubeconfig = kube.kubeconfig) {
    const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: kubeconfig }
    return runGatehouse(['cluster', ...args], '', env)
  }
  async function why(object: string, kubeconfig = kube.kubeconfig) {
    const ran = await run(['why', object, '-n', 'team', '-o', 'json'], kubeconfig)
    return { ...ran, ...untyped(JSON.parse(ran.stdout)) }
  }

  /** Writes the objects of a world to the API server: specs, then statuses, then workloads with their real owner. */
  function store(world: World): void {
    const objects = [...world.objects.values()]
    const own = objects.filter(({ apiVersion }) => apiVersion.startsWith('gatehouse.dev/'))
    const plain = ({ apiVersion, kind, metadata: { name, namespace }, spec }: Stored) => ({
      apiVersion,
      kind,
      metadata: { name, namespace },
      spec,
    })
    apply(...own.map(plain))
    const uids = new Map<unknown, string>()
    for (const { kind, metadata, status } of own) {
      const { uid, generation } = kube.get([kind, metadata.name, '-n', 'team']).metadata
      uids.set(metadata['uid'], uid)
      setStatus(kind, metadata.name, { ...untyped(status), observedGeneration: generation })
    }
    const workloads = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
    apply(
      ...workloads.map((one) => {
        const { labels, ownerReferences } = untyped(one.metadata)
        const owners = ownerReferences.map((owner: { uid: string }) => ({
          ...owner,
          uid: uids.get(owner.uid),
        }))
        return { ...plain(one), metadata: { ...plain(one).metadata, labels, ownerReferences: owners } }
      }),
    )
  }

  const world = new World().apply(
    resource('MCPGroup', 'all', {}),
    resource('MCPServerEntry', 'docs', {
      remoteUrl: 'https://docs.example.com/mcp',
      transport: 'streamable-http',
      groupRef: { name: 'all' },
    }),
    resource('MCPServer', 'files', {
      image: 'registry.example/files:1',
      transport: 'streamable-http',
      groupRef: { name: 'all' },
    }),
    resource('VirtualMCPServer', 'tools', { groupRef: { name: 'all' }, incomingAuth: { type: 'anonymous' } }),
    resource('VirtualMCPServer', 'lost', {
      groupRef: { name: 'nowhere' },
      incomingAuth: { type: 'anonymous' },
    }),
    resource('MCPOIDCConfig', 'corp', {
      type: 'inline',
      inline: {
        issuer: 'https://idp.example.com',
        clientId: 'x',
        clientSecretRef: { name: 'corp', key: 'secret' },
      },
    }),
  )

  await t.test('reports a missing installation, then an empty one', async (t) => {
    const none = await run(['status'])
    t.equal(none.code, 2)
    t.match(
      none.stderr,
      /the gatehouse\.dev kinds are not installed in the cluster: run "gatehouse doctor --cluster"/,
    )
    kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds')])
    kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    t.same(await run(['status', '-n', 'team']), {
      code: 0,
      stdout: 'No gatehouse.dev objects in namespace team\n',
      stderr: '',
    })
  })

  await t.test('status: prints one line per object, and a count', async (t) => {
    kube.must(['create', 'namespace', 'team'])
    world.settle()
    store(world)
    const { code, stdout } = await run(['status', '-A'])
    t.equal(code, 1)
    t.match(stdout, /^NAMESPACE +KIND\/NAME +READY +REASON +MESSAGE +AGE\n/)
    t.match(
      stdout,
      /^team +virtualmcpserver\/lost +False +GroupRefNotFound +MCPGroup nowhere does not exist +\d+[sm]/m,
    )
    t.match(stdout, /^team +mcpserverentry\/docs +True /m)
    t.match(stdout, /\n6 objects: 2 ready, 4 not ready, 2 rollouts in progress\n$/)
    const some = await run(['status', '-n', 'team', 'mcpg', 'mcpentry/docs', '-o', 'json'])
    t.match(some, { code: 0, stderr: '' })
    t.match(JSON.parse(some.stdout), {
      schema: 'gatehouse.dev/cluster-status/v1',
      objects: [
        { kind: 'MCPGroup', name: 'all', ready: 'True' },
        { kind: 'MCPServerEntry', name: 'docs', ready: 'True' },
      ],
      counts: { objects: 2, ready: 2, notReady: 0 },
      unread: [],
    })
  })

  await t.test('why: reports a missing object as the cause', async (t) => {
    const lost = await why('vmcp/lost')
    t.equal(lost.code, 1)
    t.match(lost.conclusion, {
      isWell: false,
      cause: /MCPGroup nowhere does not exist/,
      step: /create the MCPGroup in the same namespace/,
    })
    const missing = await why('mcpoidc/corp')
    t.match(missing.findings, [
      { section: 'spec', result: 'failed', reason: 'SecretNotFound' },
      { section: 'refers to', object: 'Secret corp', result: 'failed' },
    ])
    const none = await run(['why', 'vmcp/nobody', '-n', 'team'])
    t.match(none, { code: 1, stderr: /there is no VirtualMCPServer nobody in namespace team/ })
    t.match(await run(['why', 'pods/x']), { code: 2, stderr: /unknown kind; expected one of .*vmcp/ })
  })

  await t.test('why: prints the name of a Secret, and no value', async (t) => {
    apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'corp', namespace: 'team' },
      data: { other: secretValue },
    })
    const { stdout, findings } = await why('mcpoidc/corp')
    t.match(findings[1], { object: 'Secret corp', result: 'ok', message: 'exists' })
    t.notMatch(stdout, /secret-value|c2VjcmV0LXZhbHVl/)
  })

  await t.test(
    'why: reports a crashing pod as the cause, before the rollout that waits for it',
    async (t) => {
      const server = kube.get(['statefulset', 'mcp-files-server', '-n', 'team'])
      const { labels } = server.spec.template.metadata
      const container = { name: 'mcp', image: 'registry.example/files:1' }
      const pod = { name: 'mcp-files-server-0', namespace: 'team' }
      apply({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...pod, labels },
        spec: { containers: [container] },
      })
      const terminated = { exitCode: 137, reason: 'OOMKilled', message: 'printed by the server: hunter2' }
      setStatus('pod', pod.name, {
        phase: 'Running',
        conditions: [{ type: 'PodScheduled', status: 'True' }],
        containerStatuses: [
          {
            ...container,
            imageID: '',
            ready: false,
            restartCount: 7,
            state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
            lastState: { terminated },
          },
        ],
      })
      apply({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'backoff', namespace: 'team' },
        involvedObject: { kind: 'Pod', ...pod },
        type: 'Warning',
        reason: 'BackOff',
        message: 'Back-off restarting failed container',
        lastTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
        count: 12,
      })
      const { code, stdout, conclusion, findings } = await why('mcps/files')
      t.equal(code, 1)
      t.match(conclusion, {
        cause:
          /^Pod mcp-files-server-0: container mcp keeps exiting: 7 restarts, the last one after exit code 137 \(OOMKilled\)/,
        step: /limits\.memory/,
      })
      t.match(
        findings.filter(({ section }: { section: string }) => section === 'event'),
        [
          {
            object: 'Pod mcp-files-server-0',
            result: 'warning',
            reason: 'BackOff',
            message: /ago, 12 times: Back-off/,
          },
        ],
      )
      t.notMatch(stdout, /hunter2/)
    },
  )

  await t.test(
    'logs and connect: work without kubectl and with the real one, and pass the right arguments',
    async (t) => {
      const env = (path: string) => ({ PATH: path, HOME: home, KUBECONFIG: kube.kubeconfig })
      const without = await runGatehouse(['cluster', 'logs', 'mcps/files', '-n', 'team'], '', env(home))
      t.match(without, { code: 1, stderr: /this command needs kubectl/ })
      const refused = await run(['connect', 'mcps/files', '-n', 'team', '--port', '0'])
      t.match(refused, { code: 1, stdout: '', stderr: /services "mcp-files-proxy" not found/ })
      t.match(await run(['connect', 'mcpentry/docs', '-n', 'team']), {
        code: 1,
        stderr: /has no address|is not a Service/,
      })
      t.match(await run(['logs', 'vmcp/tools', '--server']), {
        code: 2,
        stderr: /--server: applies only to an MCPServer/,
      })

      // Stands in for kubectl: records its arguments and prints what `kubectl port-forward` prints.
      const folder = t.testdir({})
      const asked = join(folder, 'asked')
      const script = `#!/bin/sh
echo "$@" >> ${asked}
case "$1" in port-forward) echo 'Forwarding from 127.0.0.1:40123 -> 8080'; echo 'Handling connection for 40123'; exec sleep 100;; esac
`
      writeFileSync(join(folder, 'kubectl'), script)
      chmodSync(join(folder, 'kubectl'), 0o755)
      const path = `${folder}:/usr/bin:/bin`
      const flags = ['-n', 'team', '--context', 'test']
      const forward = startGatehouse(['cluster', 'connect', 'mcps/files', '--port', '0', ...flags], env(path))
      await forward.waitFor(/client add CLIENT --url http:\/\/127\.0\.0\.1:40123\/mcp\n/)
      t.equal(await forward.interrupt(), 0, 'an interrupt ends it successfully')
      t.match(
        forward.output(),
        /^MCPServer team\/files is available at http:\/\/127\.0\.0\.1:40123\/mcp until interrupted\./,
      )
      const more = ['-f', '--since', '10m', '-c', 'mcp', '--server']
      t.match(await runGatehouse(['cluster', 'logs', 'mcps/files', ...flags, ...more], '', env(path)), {
        code: 0,
      })
      const [first, second] = readFileSync(asked, 'utf8').split('\n')
      t.equal(
        first,
        'port-forward --context=test --namespace=team --address=127.0.0.1 service/mcp-files-proxy :8080',
      )
      t.match(
        second,
        /^logs --context=test --namespace=team --selector=.*app\.kubernetes\.io\/component=server/,
      )
      t.match(second, / --prefix --tail=-1 --follow --since=10m --container=mcp --max-log-requests=5$/)
    },
  )

  await t.test('a user with few rights: reports unreadable objects', async (t) => {
    const account = { name: 'viewer', namespace: 'team' }
    const rbac = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'viewer' }
    apply(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: account,
        rules: [
          {
            apiGroups: ['gatehouse.dev'],
            resources: ['mcpservers', 'mcpoidcconfigs'],
            verbs: ['get', 'list'],
          },
        ],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: account,
        roleRef: rbac,
        subjects: [{ kind: 'ServiceAccount', ...account }],
      },
    )
    const viewer = kube.configOf('viewer', 'team')
    const { code, findings } = await why('mcps/files', viewer)
    t.equal(code, 1)
    const unread = findings.filter(({ result }: { result: string }) => result === 'unknown')
    t.same(
      unread
        .map(({ object, message }: { object: string; message: string }) => `${object}: ${message}`)
        .sort(),
      [
        'MCPGroup all: no permission to get this object in namespace team',
        'namespace team: no permission to list deployments',
        'namespace team: no permission to list events',
        'namespace team: no permission to list statefulsets',
      ],
    )
    t.match((await why('mcpoidc/corp', viewer)).findings[1], { object: 'Secret corp', result: 'unknown' })
    const status = await run(['status', '-n', 'team'], viewer)
    t.equal(status.code, 1)
    t.match(status.stdout, /mcpserver\/files/)
    t.match(status.stderr, /^no permission to list virtualmcpservers in namespace team$/m)
    t.match(await run(['status', '--context', 'other']), {
      code: 2,
      stderr: /no context other; expected one of test/,
    })
  })
})
