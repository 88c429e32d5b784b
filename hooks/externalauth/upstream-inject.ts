/** Type `upstreamInject`: the caller's token of an upstream provider, which an embedded authorization server holds. */
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
