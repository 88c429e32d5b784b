/**
 * Golden cases of client certificates with an unusable Secret: without the key, or with the key of another certificate.
 */
import {
  decisionPoint,
  decisionPointObjects,
  entry,
  remote,
  secret,
  server,
  virtual,
  webhookConfig,
  webhookSecrets,
  world,
} from '../../hooks/resources.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import type { Stored } from '../../hooks/world.ts'

type Request = Record<string, unknown>

const usable = (name: string): Stored => secret(name, servingCertificate)
const withoutKey = (name: string): Stored => secret(name, { 'tls.crt': servingCertificate['tls.crt'] })
const mismatched = (name: string): Stored =>
  secret(name, { ...servingCertificate, 'tls.crt': servingCertificate['ca.crt'] })

const clientCertificateSecretRef = { name: 'remote-client' }
const authzConfig = {
  type: 'httpv1',
  httpv1: {
    http: {
      url: 'https://decisions.example.com/v1/decide',
      clientCertificateSecretRef: { name: 'pdp-client' },
    },
    claimMapping: 'standard',
  },
}

/** Returns the request after the first object was synced with the others. */
const synced =
  (object: Stored, ...others: Stored[]) =>
  (): Request =>
    world(object, ...others)
      .settle()
      .request(object.kind, object.metadata.name)
const remoteServer = entry('search', { clientCertificateSecretRef })
const proxy = remote('crm', { clientCertificateSecretRef })
const guardedDoor = virtual({ incomingAuth: { type: 'anonymous', authzConfig } })

export const certificateCases: Record<string, () => Request> = {
  'MCPServerEntry/client-certificate-without-key': synced(remoteServer, withoutKey('remote-client')),
  'MCPServerEntry/client-certificate-mismatch': synced(remoteServer, mismatched('remote-client')),
  'MCPRemoteProxy/client-certificate-without-key': synced(proxy, withoutKey('remote-client')),
  'MCPRemoteProxy/client-certificate-mismatch-keeps-children': () =>
    world(proxy, usable('remote-client'))
      .ready()
      .apply(mismatched('remote-client'))
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPRemoteProxy/decision-point-pair-mismatch': synced(
    remote('crm', { authzConfig }),
    mismatched('pdp-client'),
  ),
  'MCPServer/decision-point-pair-mismatch': synced(
    server('files', { authzConfig }),
    mismatched('pdp-client'),
  ),
  'VirtualMCPServer/decision-point-pair-mismatch': synced(guardedDoor, mismatched('pdp-client')),
  'VirtualMCPServer/decision-point-without-key': synced(guardedDoor, withoutKey('pdp-client')),
  'MCPAuthzConfig/decision-point-without-key': synced(
    decisionPoint(),
    ...decisionPointObjects(),
    withoutKey('pdp-client'),
  ),
  'MCPAuthzConfig/decision-point-pair-mismatch': synced(
    decisionPoint(),
    ...decisionPointObjects(),
    mismatched('pdp-client'),
  ),
  'MCPWebhookConfig/client-certificate-mismatch': synced(
    webhookConfig(),
    ...webhookSecrets(),
    mismatched('webhook-client'),
  ),
}
