/**
 * The API server presents a client certificate to the webhook, as described in docs/guides/install.md. The webhook
 * accepts only the authority of that certificate.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import { startHooksProcess, writeCertificate } from '../../helpers/hooks/process.ts'
import { kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { makeCertificates } from '../../helpers/redis.ts'

const group = JSON.stringify({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPGroup',
  metadata: { name: 'tools', namespace: 'default' },
  spec: {},
})

function webhook(port: number, ca: string): string {
  const clientConfig = {
    url: `https://localhost:${port}/validate`,
    caBundle: Buffer.from(ca).toString('base64'),
  }
  const rule = {
    apiGroups: ['gatehouse.dev'],
    apiVersions: ['*'],
    resources: ['mcpgroups'],
    operations: ['CREATE'],
  }
  return JSON.stringify({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'hooks' },
    webhooks: [
      {
        name: 'validate.gatehouse.dev',
        clientConfig,
        rules: [rule],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
      },
    ],
  })
}

/** Writes the files that make an API server present a certificate to every webhook. */
function admissionFile(folder: string, own: { certFile: string; keyFile: string }): string {
  const [config, kubeconfig] = [join(folder, 'admission.yaml'), join(folder, 'webhooks.yaml')]
  const user = { 'client-certificate': own.certFile, 'client-key': own.keyFile }
  writeFileSync(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: '*', user }] }),
  )
  const configuration = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'WebhookAdmissionConfiguration',
    kubeConfigFile: kubeconfig,
  }
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AdmissionConfiguration',
      plugins: [{ name: 'ValidatingAdmissionWebhook', configuration }],
    }),
  )
  return config
}

await t.test(
  'the webhook requires the client certificate of the API server',
  { skip: kubeMissing() },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hooks-client-'))
    const [own, other] = [makeCertificates(), makeCertificates()]
    t.teardown(() => {
      for (const { remove } of [own, other]) remove()
      rmSync(folder, { recursive: true, force: true })
    })
    const kube = await startKubeApiserver(t, { admissionFile: admissionFile(folder, own) })
    kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds/mcpgroups.yaml')])
    kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    const served = await issueCertificate({ names: ['localhost'], now: new Date(), lifetimeMs: 3_600_000 })
    writeCertificate(folder, served)
    const authority = join(folder, 'authority.crt')
    writeFileSync(authority, other.ca)
    const hooks = await startHooksProcess(t, folder, [], ['--client-ca-file', authority])
    kube.must(['apply', '-f', '-'], webhook(hooks.port, served.ca))
    const create = () => kube.kubectl(['create', '--dry-run=server', '-f', '-'], group)

    // An API server applies a new configuration after a delay, so this polls.
    let refused = create()
    for (; refused.code === 0; refused = create()) await pause(100)
    t.match(
      refused.stderr,
      /failed calling webhook .*validate\.gatehouse\.dev/,
      'signed by another authority',
    )

    const reloaded = hooks.logged('the serving certificate was reloaded')
    writeFileSync(authority, readFileSync(own.caFile))
    await reloaded
    const admitted = create()
    t.equal(admitted.code, 0, admitted.stderr)
  },
)
