/** `proxy stdio NAME` resolves the address of a resource in the current context, from a real API server. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../helpers/kube/apiserver.ts'
import { proves } from '../helpers/proves.ts'
import { rpc, startUpstream } from '../helpers/proxy/rig.ts'
import { program } from '../helpers/gatehouse.ts'

proves('1.command.stdio', '1.command.tunnel')

t.setTimeout(180_000)

const root = resolve(import.meta.dirname, '../../manifests')

async function run(kubeconfig: string, args: readonly string[], input = '') {
  const child = spawn(process.execPath, [program, 'proxy', ...args], {
    stdio: 'pipe',
    env: { PATH: process.env['PATH'], HOME: join(tmpdir(), 'gatehouse-no-home'), KUBECONFIG: kubeconfig },
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.end(input)
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

function makeResource(kube: KubeApiserver, kind: string, name: string, spec: object, url?: string): void {
  const object = { apiVersion: 'gatehouse.dev/v1beta1', kind, metadata: { name, namespace: 'team' }, spec }
  kube.must(['apply', '-f', '-'], JSON.stringify(object))
  if (url === undefined) return
  const patch = JSON.stringify({ status: { url } })
  kube.must(['patch', kind, name, '-n', 'team', '--subresource=status', '--type=merge', '-p', patch])
}

await t.test('proxy stdio NAME with a real API server', { skip: kubeMissing() }, async (t) => {
  const kube = await startKubeApiserver(t)
  kube.must(['apply', '--server-side', '-f', join(root, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  kube.must(['create', 'namespace', 'team'])
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  t.teardown(() => target.close())
  const url = `${target.url}/mcp`
  const remote = { remoteUrl: 'https://guarded.example/mcp' }
  makeResource(kube, 'MCPServer', 'notes', { image: 'example.com/notes:1' }, url)
  makeResource(kube, 'MCPServer', 'twin', { image: 'example.com/notes:1' }, url)
  makeResource(kube, 'MCPRemoteProxy', 'twin', remote, 'http://127.0.0.1:1/mcp')
  makeResource(kube, 'MCPRemoteProxy', 'young', remote)
  makeResource(
    kube,
    'MCPServer',
    'inside',
    { image: 'x.example/y:1' },
    'http://inside.team.svc.cluster.local:8080/mcp',
  )
  const stdio = (name: string, ...more: string[]) =>
    run(kube.kubeconfig, ['stdio', ...more, '--namespace', 'team', name], `${rpc(1, 'ping')}\n`)

  await t.test('name: uses status.url, with or without the kind', async (t) => {
    for (const name of ['notes', 'mcpserver/notes', 'mcpservers/notes', 'MCPServer/twin']) {
      const { code, stdout, stderr } = await stdio(name)
      t.equal(code, 0, stderr)
      t.equal(stdout, '{"jsonrpc":"2.0","id":1,"result":{}}\n')
    }
  })

  await t.test('name: rejects a name of several resources, and names the alternatives', async (t) => {
    const { code, stdout, stderr } = await stdio('twin')
    t.equal(code, 2)
    t.equal(stdout, '')
    t.match(stderr, /twin is ambiguous in namespace team: write mcpserver\/twin or mcpremoteproxy\/twin/)
  })

  await t.test(
    'name: reports a resource that is absent, has no address, or is in another namespace or of another kind',
    async (t) => {
      t.match(await stdio('nobody'), {
        code: 1,
        stderr: /no MCP server named nobody in namespace team \(context test\)/,
      })
      const young = await stdio('young')
      t.match(
        young,
        { code: 1, stderr: /MCPRemoteProxy team\/young has no address yet/ },
        'not the address of its target',
      )
      t.match(await run(kube.kubeconfig, ['stdio', 'notes']), { code: 1, stderr: /in namespace default/ })
      t.match(await stdio('mcpgroup/notes'), { code: 2, stderr: /the kind must be one of VirtualMCPServer/ })
    },
  )

  await t.test('name: explains how to reach an address inside the cluster', async (t) => {
    const { code, stderr } = await stdio('inside')
    t.equal(code, 1)
    t.match(stderr, /kubectl port-forward -n team service\/inside 8080:8080/)
  })

  await t.test('cluster: reports a cluster that does not respond, and a missing one', async (t) => {
    t.match(await run('/nonexistent/config', ['stdio', 'notes']), {
      code: 2,
      stderr: /cannot read the kubeconfig/,
    })
    t.match(await run('', ['stdio', 'notes']), {
      code: 2,
      stderr:
        /no server [^]*\nIn the cluster: TARGET: notes is not an http or https URL, and there is no kubeconfig in which to look it up/,
    })
    const gone = join(t.testdir({}), 'gone')
    writeFileSync(
      gone,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    )
    t.match(await run(gone, ['stdio', 'notes']), {
      code: 1,
      stderr: /the cluster http:\/\/127\.0\.0\.1:9 .* did not respond/,
    })
  })

  await t.test('tunnel: checks the target of a name like any other target', async (t) => {
    const args = [
      'tunnel',
      '-n',
      'team',
      '--dry-run',
      '--insecure-unauthenticated',
      '--tunnel-provider',
      'exec',
    ]
    const exec = ['--provider-args', '{"command":["true","{port}"]}']
    t.match(await run(kube.kubeconfig, [...args, ...exec, 'notes', 'demo']), { code: 0, stdout: '' })
    t.match(await run(kube.kubeconfig, [...args, ...exec, 'nobody', 'demo']), { code: 1 })
  })
})
