/** Golden cases of webhooks: the kind, and a virtual server that names one. */
import { virtual, webhookConfig, webhookSecrets, world } from './resources.ts'
import type { Stored, World } from './world.ts'

type Request = Record<string, unknown>

const asked = (kind: string, name: string) => (w: World) => w.request(kind, name)
const shared = asked('MCPWebhookConfig', 'company')
const door = asked('VirtualMCPServer', 'door')
const server = (): Stored => virtual({ webhookConfigRef: { name: 'company' } })

export const webhookCases: Record<string, () => Request> = {
  'MCPWebhookConfig/company': () => shared(world(webhookConfig(), ...webhookSecrets(), server()).settle()),
  'MCPWebhookConfig/secrets-missing': () => shared(world(webhookConfig()).settle()),
  'VirtualMCPServer/webhooks': () =>
    door(
      world(webhookConfig(), ...webhookSecrets(), server())
        .ready()
        .settle(),
    ),
  'VirtualMCPServer/webhooks-without-secrets': () => door(world(webhookConfig(), server()).ready().settle()),
}
