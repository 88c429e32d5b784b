/** Type `tokenExchange`: RFC 8693. Expands short subject token types to full URNs. */
import { failed } from '../sync/conditions.ts'
import {
  credentialFiles,
  type ExternalAuthModule,
  definedItems,
  noIdToken,
  subjectProvider,
} from './module.ts'
import { definedFields } from '../base/kube.ts'
import { clientAuthPart } from '../runtime-config/client-auth.ts'

const urn = 'urn:ietf:params:oauth:token-type:'

export const tokenExchange: ExternalAuthModule = {
  validate({ tokenExchange: config }) {
    if (!config?.clientSecretRef || config.clientId) return []
    return [{ path: 'spec.tokenExchange.clientId', message: 'is required with clientSecretRef' }]
  },
  secrets: ({ tokenExchange: config }) =>
    definedItems([config?.clientSecretRef, config?.clientAuth?.privateKeyRef]),
  rereadSecrets: ({ tokenExchange: config }) => definedItems([config?.clientAuth?.privateKeyRef]),
  toRuntime({ tokenExchange: config }, target) {
    if (!config) return { value: undefined }
    const provider = subjectProvider(config.subjectProviderName, target)
    if (provider.failure) return provider
    const subjectTokenType = fullType(config.subjectTokenType)
    if (subjectTokenType === `${urn}id_token` && target.upstreams?.length === 0) {
      return failed('SubjectProviderUnknown', noIdToken('tokenExchange with subjectTokenType id_token'))
    }
    const variable = `GATEHOUSE_TOKEN_EXCHANGE_CLIENT_SECRET_${target.variable}`
    const settings = definedFields({
      tokenUrl: config.tokenUrl,
      audience: config.audience,
      clientId: config.clientId || undefined,
      clientSecretEnv: config.clientSecretRef && target.needs.secretEnv(variable, config.clientSecretRef),
      clientAuth: clientAuthPart(config.clientAuth, 'client', config.tokenUrl, credentialFiles(target)),
      scopes: config.scopes,
      externalTokenHeaderName: config.externalTokenHeaderName || undefined,
      subjectProviderName: provider.value,
      subjectTokenType,
    })
    return { value: { type: 'token_exchange', tokenExchange: settings } }
  },
}

function fullType(type: string | undefined): string {
  if (type === undefined || type === '') return `${urn}access_token`
  return type.startsWith(urn) ? type : urn + type
}
