import type { Services } from '../../core/resource/services.ts';
import { chargebee } from './chargebee/chargebee.ts';
import { paddle } from './paddle/paddle.ts';
import { type Processor, type ProcessorMode, type ProcessorName, processor_names } from './processor.ts';
import { stripe } from './stripe/stripe.ts';

/** The billing processors whose events are taken in. */
export const billing: Readonly<Record<ProcessorName, Processor>> = { stripe, paddle, chargebee };

export const isProcessorName = (name: string): name is ProcessorName =>
  (processor_names as readonly string[]).includes(name);

/** The base URL of a processor: what is set for it, else its own for the mode. */
export const processorUrl = (
  name: ProcessorName,
  mode: ProcessorMode,
  { provider_urls }: Pick<Services, 'provider_urls'>,
): string => provider_urls[name] ?? billing[name].urls[mode];

/** The URL that a processor sends its events to. */
export const webhookUrl = (name: ProcessorName, program_id: string, { base_url }: Pick<Services, 'base_url'>): string =>
  `${base_url}/processors/${name}/${program_id}`;
