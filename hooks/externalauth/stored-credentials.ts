/** The types of MCPExternalAuthConfig that send a stored credential unchanged. */
import { definedFields } from '../base/kube.ts'
import { type ExternalAuthModule, definedItems, subjectProvider } from './module.ts'

/** Type `basicAuth`: user name and password (RFC 7617). */
export const basicAuth: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ basicAuth: config }) => definedItems([config?.usernameSecretRef, config?.passwordSecretRef]),
  toRuntime({ basicAuth: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const { username, usernameSecretRef, passwordSecretRef } = config
    const settings = definedFields({
      username,
      usernameEnv:
        usernameSecretRef && needs.secretEnv(`GATEHOUSE_BASIC_AUTH_USERNAME_${variable}`, usernameSecretRef),
      passwordEnv: needs.secretEnv(`GATEHOUSE_BASIC_AUTH_PASSWORD_${variable}`, passwordSecretRef),
    })
    return { value: { type: 'basic_auth', basicAuth: settings } }
  },
}

/** Type `bearerToken`: a static token in the Authorization header. */
export const bearerToken: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ bearerToken: config }) => definedItems([config?.tokenSecretRef]),
  toRuntime({ bearerToken: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const tokenEnv = needs.secretEnv(`GATEHOUSE_BEARER_TOKEN_${variable}`, config.tokenSecretRef)
    return { value: { type: 'bearer_token', bearerToken: { tokenEnv } } }
  },
}

/** Type `headerInjection`: one header, whose value comes from a Secret. */
export const headerInjection: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ headerInjection: config }) => definedItems([config?.valueSecretRef]),
  toRuntime({ headerInjection: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const headerValueEnv = needs.secretEnv(
      `GATEHOUSE_HEADER_INJECTION_VALUE_${variable}`,
      config.valueSecretRef,
    )
    return {
      value: { type: 'header_injection', headerInjection: { headerName: config.headerName, headerValueEnv } },
    }
  },
}

/** Type `upstreamInject`: sends the caller's upstream token, which an embedded authorization server stores. */
export const upstreamInject: ExternalAuthModule = {
  validate: () => [],
  secrets: () => [],
  toRuntime({ upstreamInject: config }, target) {
    const provider = subjectProvider(config?.providerName, target)
    if (provider.failure) return provider
    return { value: { type: 'upstream_inject', upstreamInject: { providerName: provider.value ?? '' } } }
  },
}
