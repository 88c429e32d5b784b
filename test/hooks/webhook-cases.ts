/** Golden cases of webhooks: the kind, and servers that name one. */
import { remote, server as mcpServer, virtual, webhookConfig, webhookSecrets, world } from './resources.ts'
import type { Stored, World } from './world.ts'

type Request = Record<string, unknown>

const asked = (kind: string, name: string) => (w: World) => w.request(kind, name)
const shared = asked('MCPWebhookConfig', 'company')
const door = asked('VirtualMCPServer', 'door')
const named = { webhookConfigRef: { name: 'company' } }
const server = (): Stored => virtual(named)

export const webhookCases: Record<string, () => Request> = {
  'MCPWebhookConfig/company': () => shared(world(webhookConfig(), ...webhookSecrets(), server()).settle()),
  'MCPWebhookConfig/secrets-missing': () => shared(world(webhookConfig()).settle()),
  'VirtualMCPServer/webhooks': () =>
    door(
      world(webhookConfig(), ...webhookSecrets(), server())
        .ready()
        .settle(),
    ),
  'MCPServer/webhooks': () =>
    asked(
      'MCPServer',
      'files',
    )(
      world(webhookConfig(), ...webhookSecrets(), mcpServer('files', named))
        .ready()
        .settle(),
    ),
  'MCPServer/webhooks-missing-keeps-children': () => {
    const w = world(webhookConfig(), ...webhookSecrets(), mcpServer('files', named))
      .ready()
      .settle()
    return asked('MCPServer', 'files')(w.remove('MCPWebhookConfig', 'company'))
  },
  'MCPRemoteProxy/webhooks': () =>
    asked(
      'MCPRemoteProxy',
      'crm',
    )(world(webhookConfig(), ...webhookSecrets(), remote('crm', named)).settle()),
  'MCPRemoteProxy/webhooks-without-secrets': () =>
    asked('MCPRemoteProxy', 'crm')(world(webhookConfig(), remote('crm', named)).settle()),
  'VirtualMCPServer/webhooks-without-secrets': () => door(world(webhookConfig(), server()).ready().settle()),
}
