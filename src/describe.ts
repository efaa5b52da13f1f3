import { type Texts, textsOf } from './core/description/texts.ts';
import type { Product, Products } from './webhooks/product.ts';
import { terms } from './webhooks/terms.ts';

/** Describes one of the products that a service offers. */
export async function describe(product: Product, products: Products, base_url: string): Promise<Texts> {
  const { title, events } = product;
  const { path, catalogue } = events;
  const others = products
    .filter((other) => other !== product)
    .map((other) => ({ title: other.title, path: other.events.path }));
  const api = await product.loadApi();
  return textsOf({ ...product, ...api, title, path, events: catalogue, delivery: terms(events), base_url, others });
}
