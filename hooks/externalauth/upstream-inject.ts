/** Type `upstreamInject`: sends the caller's upstream token, which an embedded authorization server stores. */
import { type ExternalAuthModule, subjectProvider } from './module.ts'

export const upstreamInject: ExternalAuthModule = {
  validate: () => [],
  secrets: () => [],
  toRuntime({ upstreamInject: config }, target) {
    const provider = subjectProvider(config?.providerName, target)
    if (provider.failure) return provider
    return { value: { type: 'upstream_inject', upstreamInject: { providerName: provider.value ?? '' } } }
  },
}
