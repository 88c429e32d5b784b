/** The two ports of the hooks server: each caller, the Service, the network policy, and the flags of the program. */
import t from 'tap'
import { kustomized, type Obj } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

interface Rule {
  readonly from?: readonly object[]
  readonly ports: readonly { readonly port: number }[]
}

const objects = kustomized()
const specOf = (kind: string, name = 'gatehouse-hooks'): ReturnType<typeof untyped> =>
  untyped(objects.find((object: Obj) => object.kind === kind && object.metadata.name === name)?.['spec'])

/** Returns the container port behind a port of the Service. */
function behind(servicePort: number): number {
  const { targetPort } = specOf('Service').ports.find((each: { port: number }) => each.port === servicePort)
  const [container] = specOf('Deployment').template.spec.containers
  return container.ports.find((each: { name: string }) => each.name === targetPort).containerPort
}

function argument(name: string): number {
  const [container] = specOf('Deployment').template.spec.containers
  const found: string | undefined = container.args.find((arg: string) => arg.startsWith(`--${name}=`))
  return Number(found?.split('=')[1])
}

function rulesOf(port: number): Rule[] {
  const ingress: Rule[] = specOf('NetworkPolicy').ingress
  return ingress.filter((rule) => rule.ports.some((each) => each.port === port))
}

await t.test('only Metacontroller can call the port of the hooks', (t) => {
  const controllers = objects.filter(({ kind }) => kind === 'CompositeController')
  t.ok(controllers.length > 5)
  for (const controller of controllers)
    for (const name of ['sync', 'customize']) {
      const { url } = untyped(controller['spec']).hooks[name].webhook
      t.equal(behind(Number(new URL(url).port)), argument('hooks-port'), url)
    }
  t.strictSame(
    rulesOf(argument('hooks-port')).map(({ from }) => from),
    [
      [
        {
          podSelector: {
            matchLabels: {
              'app.kubernetes.io/name': 'gatehouse-metacontroller',
              'app.kubernetes.io/component': 'metacontroller',
            },
          },
        },
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'metacontroller' } } },
      ],
    ],
  )
  t.end()
})

await t.test('the API server calls the other port, which no policy can restrict', (t) => {
  const configuration = objects.find(({ kind }) => kind === 'ValidatingWebhookConfiguration')
  const webhooks: { clientConfig: { service: { port: number } } }[] = untyped(configuration)['webhooks']
  t.equal(webhooks.length, 2)
  for (const { clientConfig } of webhooks) t.equal(behind(clientConfig.service.port), argument('port'))
  t.strictSame(
    rulesOf(argument('port')).map(({ from }) => from),
    [undefined],
  )
  t.not(argument('port'), argument('hooks-port'))
  t.end()
})
